//! Commands that change a host's network, and their execution.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// A change of the host's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
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
}

impl Step {
    pub(super) fn ip(command: impl Into<String>) -> Self {
        Step::Ip(command.into())
    }

    pub(super) fn nft(script: impl Into<String>) -> Self {
        Step::Nft(script.into())
    }

    pub(super) fn sysctl(name: impl Into<String>, value: &str) -> Self {
        Step::Sysctl { name: name.into(), value: value.to_owned() }
    }

    /// Make the change.
    ///
    /// # Errors
    /// If the program is missing, or refuses it. The message names the command.
    pub(crate) fn execute(&self) -> io::Result<()> {
        match self {
            Step::Ip(command) => run(Command::new("ip").args(command.split(' ')), "").map(|_| ()),
            Step::Nft(script) => run(Command::new("nft").args(["-f", "-"]), script).map(|_| ()),
            Step::Sysctl { name, value } => {
                let file = format!("/proc/sys/{name}");
                fs::write(&file, value).map_err(|error| with_name(&file, &error))
            }
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
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = command
        .env("PATH", format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin"))
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

/// The command as a user would type it.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Ip(command) => write!(f, "ip {command}"),
            Step::Nft(script) => write!(f, "nft -f - <<'END'\n{script}END"),
            Step::Sysctl { name, value } => {
                write!(f, "sysctl -w {}={value}", name.replace('/', "."))
            }
        }
    }
}

/// Commands that make an instance's network, and commands that remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Changes that make it, in order.
    pub(crate) up: Vec<Step>,
    /// Changes that remove it, in order. Each is made even if an earlier one fails.
    pub(crate) down: Vec<Step>,
}

impl Setup {
    /// Make all changes. If one fails, remove what was made.
    ///
    /// # Errors
    /// The first change that failed.
    pub(crate) fn make(&self) -> io::Result<()> {
        let made = self.up.iter().try_for_each(Step::execute);
        if made.is_err() {
            self.remove();
        }
        made
    }

    /// Remove what exists of it.
    pub(crate) fn remove(&self) {
        for step in &self.down {
            // It may be gone already, with its device or its interface.
            let _ = step.execute();
        }
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
