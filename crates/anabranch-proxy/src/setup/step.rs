//! Commands that change a host's network, and their execution.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::sysctl;

/// A change of the host's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SetupStep {
    /// A command of iproute2, without `ip`.
    Ip(String),
    /// A script for `nft -f -`.
    Nft(String),
    /// A value below `/proc/sys`.
    Sysctl {
        /// Path below `/proc/sys`.
        name: String,
        /// The value.
        value: String,
    },
    /// The end of forwarding on an interface.
    StopForwarding {
        /// Path below `/proc/sys`.
        name: String,
        /// Path of a switch that makes the whole host a router. Forwarding stays on if this switch is
        /// on by then.
        unless: Option<String>,
    },
}

impl SetupStep {
    pub(super) fn ip(command: impl Into<String>) -> Self {
        SetupStep::Ip(command.into())
    }

    pub(super) fn nft(script: impl Into<String>) -> Self {
        SetupStep::Nft(script.into())
    }

    pub(super) fn sysctl(name: impl Into<String>, value: &str) -> Self {
        SetupStep::Sysctl { name: name.into(), value: value.to_owned() }
    }

    /// The key of the forwarding that it ends, and the switch that prevents that.
    fn forwarding(&self) -> Option<(&str, Option<&str>)> {
        match self {
            SetupStep::StopForwarding { name, unless } => Some((name, unless.as_deref())),
            _ => None,
        }
    }

    /// Make the change.
    ///
    /// # Errors
    /// If the program is missing, or refuses it. The message names the command.
    pub(crate) fn execute(&self) -> io::Result<()> {
        match self {
            SetupStep::Ip(command) => {
                run(Command::new("ip").args(command.split(' ')), "").map(|_| ())
            }
            SetupStep::Nft(script) => {
                run(Command::new("nft").args(["-f", "-"]), script).map(|_| ())
            }
            SetupStep::Sysctl { name, value } => sysctl::set(name, value),
            SetupStep::StopForwarding { name, unless } => match unless {
                Some(switch) if sysctl::is_on(switch) => Ok(()),
                _ => sysctl::set(name, "0"),
            },
        }
    }
}

fn with_name(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Run a program to its end, and return its output.
pub(super) fn run(command: &mut Command, input: &str) -> io::Result<String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let name = words.join(" ");
    let mut child = command
        .env("PATH", search_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| with_name(&name, &error))?;
    child.stdin.take().expect("it is piped").write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(io::Error::other(format!("{name}: {said}")))
}

/// Folders of programs, also those that a user's path may lack.
fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin")
}

/// The command as a user would type it.
impl fmt::Display for SetupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupStep::Ip(command) => write!(f, "ip {command}"),
            SetupStep::Nft(script) => write!(f, "nft -f - <<'END'\n{script}END"),
            SetupStep::Sysctl { name, value } => {
                write!(f, "sysctl -w {}={value}", name.replace('/', "."))
            }
            SetupStep::StopForwarding { name, unless } => {
                write!(f, "sysctl -w {}=0", name.replace('/', "."))?;
                match unless {
                    Some(key) => write!(f, "  # unless {} is 1 by then", key.replace('/', ".")),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Commands that make an instance's network, and commands that remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The number of the instance on this host.
    pub(crate) number: u8,
    /// Changes that make it, in order.
    pub(crate) up: Vec<SetupStep>,
    /// Changes that remove it, in order. Each is made even if an earlier one fails.
    pub(crate) down: Vec<SetupStep>,
}

impl Setup {
    /// Make all changes.
    ///
    /// # Errors
    /// The first change that failed.
    pub(crate) fn make(&self) -> io::Result<()> {
        self.up.iter().try_for_each(SetupStep::execute)
    }

    /// Remove what exists of it. The `others` on this host keep the forwarding that they need.
    pub(crate) fn remove(&self, others: &[Setup]) {
        let needed: BTreeSet<_> =
            others.iter().flat_map(Setup::forwarding).map(|it| it.0).collect();
        for step in &self.down {
            if !step.forwarding().is_some_and(|(name, _)| needed.contains(name)) {
                // It may be gone already, with its device or its interface.
                let _ = step.execute();
            }
        }
    }

    /// Keys of the forwarding that it ends, and the switches that prevent that.
    pub(super) fn forwarding(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.down.iter().filter_map(SetupStep::forwarding)
    }

    /// All commands, for people who want to read them first.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (title, steps) in [("set up", &self.up), ("take down", &self.down)] {
            let _ = writeln!(text, "# {title}");
            for step in steps {
                let _ = writeln!(text, "{step}");
            }
        }
        text
    }
}
