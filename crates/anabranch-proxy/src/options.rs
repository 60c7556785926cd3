//! Options of the command line, and the same ones from a file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anabranch_net::units::ByteCount;
use clap::{Args, Parser, Subcommand};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::destinations::Prefix;
use crate::orders::CaptureOrder;
use crate::policies::{Policies, PolicyArgument};
use crate::uplinks::{self, NamedUplink};

/// Carry the TCP connections of unmodified programs over several uplinks with Multipath TCP.
#[derive(Debug, Parser)]
#[command(name = "anabranch-proxy", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Command to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Offer a SOCKS5 and HTTP CONNECT port, and carry its connections over all uplinks.
    #[command(after_help = CLIENT_EXAMPLES)]
    Client(ClientOptions),
    /// Continue the connections of clients towards their destinations.
    #[command(after_help = RELAY_EXAMPLES)]
    Relay(RelayOptions),
    /// Measure each uplink towards the relay: rate, delay, queue and loss.
    #[command(after_help = MEASURE_EXAMPLES)]
    Measure(MeasureOptions),
    /// The process without privileges, which the others start.
    #[command(hide = true)]
    Worker,
}

const CLIENT_EXAMPLES: &str = "\
Examples:
  openssl rand -base64 32 > secret; chmod 600 secret     # the same file on both hosts
  anabranch-proxy client --uplink eth0 --uplink wwan0 --relay relay.example.org:5124 \\
      --secret-file secret
  curl --proxy socks5h://127.0.0.1:1080 https://example.org/
  anabranch-proxy client --config /etc/anabranch-proxy/client.toml
  anabranch-proxy client --uplink eth0 --uplink wwan0 --relay 192.0.2.1:5124 \\
      --secret-file secret --tun                         # all programs, without a proxy
  anabranch-proxy client --uplink eth0 --uplink wwan0 --relay 192.0.2.1:5124 \\
      --secret-file secret --dry-run                     # print all commands, run none";

const RELAY_EXAMPLES: &str = "\
Examples:
  anabranch-proxy relay --listen 5124 --secret-file secret
  anabranch-proxy relay --listen 5124 --secret-file secret --metrics 127.0.0.1:9124
  anabranch-proxy relay --listen 5124 --secret-file secret --allow 10.20.0.0/16";

const MEASURE_EXAMPLES: &str = "\
Examples:
  anabranch-proxy measure --uplink eth0 --uplink wwan0 --relay relay.example.org:5124 \\
      --secret-file secret --budget 40MB --out uplinks.toml
  anabranch advise uplinks.toml                          # policies for these uplinks
  anabranch run uplinks.toml --scheduler blest           # the same uplinks in the simulator";

/// Size at which a capture ends by default, as that of `anabranch run`.
const CAPTURE_LIMIT: &str = "2GB";

/// Least budget of a measurement for each uplink, in bytes (this project).
const LEAST_BUDGET: u64 = 1_000_000;
/// Bytes that qlog needs of each packet: all headers.
const QLOG_SNAP: u32 = 128;

/// Give a struct of options `or`: the own value first, then another one's.
macro_rules! or {
    ($name:ident: options $($option:ident)*, lists $($list:ident)*, flags $($flag:ident)*, parts $($part:ident)*) => {
        impl $name {
            /// These options, and from `other` those that are missing.
            fn or(self, other: Self) -> Self {
                $name {
                    $($option: self.$option.or(other.$option),)*
                    $($list: if self.$list.is_empty() { other.$list } else { self.$list },)*
                    $($flag: self.$flag || other.$flag,)*
                    $($part: self.$part.or(other.$part),)*
                }
            }
        }
    };
}

/// Options of both ends.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default)]
pub(crate) struct CommonOptions {
    /// Read options from this TOML file; its keys are the options with underscores. Options of the
    /// command line come first.
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) config: Option<PathBuf>,
    /// File with the secret that client and relay share (at least 32 random characters; readable by
    /// its owner only).
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Interface that leads to the Internet; repeat the option for each. With
    /// wwan0,budget=500MB, a client stops using wwan0 after this amount in both directions together.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) uplink: Vec<String>,
    /// Name of this instance, if a host runs several of them.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Scheduler: a name, or a table as in a scenario [default: min_rtt].
    #[arg(long, value_name = "POLICY")]
    pub(crate) scheduler: Option<PolicyArgument>,
    /// Congestion control of each uplink [default: lia].
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion_control: Option<String>,
    /// Remedies against a full receive window: names with commas between them, or none [default:
    /// opportunistic_retransmission,penalisation].
    #[arg(long, value_name = "NAMES")]
    pub(crate) remedies: Option<PolicyArgument>,
    /// Send buffer and receive buffer of each connection [default: 4MiB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) buffer: Option<String>,
    /// Write the packets on the uplinks to this file (pcapng). It contains the data of all programs.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Keep this many bytes of each captured packet; 128 have all headers [default: all].
    #[arg(long, value_name = "COUNT")]
    pub(crate) snap: Option<u32>,
    /// Write each subflow as qlog, for qvis, to this file when the program ends (with Python only).
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Stop the capture at this size [default: 2GB].
    #[arg(long, value_name = "SIZE")]
    pub(crate) pcap_limit: Option<String>,
    /// Serve metrics for Prometheus at this address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// User that the process without privileges becomes [default: nobody].
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Name destinations in logs.
    #[arg(long)]
    pub(crate) log_destinations: bool,
    /// Print the commands that set up and take down the network, and run none of them.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) dry_run: bool,
}

or!(CommonOptions:
    options config secret_file name scheduler congestion_control remedies buffer pcap snap
        qlog pcap_limit metrics user,
    lists uplink, flags log_destinations dry_run, parts);

/// Options of a client.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientOptions {
    /// Options of both ends.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) common: CommonOptions,
    /// The relay. Without it, connections go to their destinations directly, and those that do not
    /// speak Multipath TCP use one uplink.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) relay: Option<String>,
    /// Interface that carries data only while the uplink is not usable, for example because it is
    /// metered. With a backup, there is one uplink.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) backup: Vec<String>,
    /// Address and port for programs [default: 127.0.0.1:1080].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Carry all new TCP connections that would leave through a default route, without a proxy in the
    /// programs.
    #[arg(long)]
    pub(crate) tun: bool,
}

or!(ClientOptions: options relay listen, lists backup, flags tun, parts common);

/// Options of a measurement.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MeasureOptions {
    /// Interface that leads to the Internet; repeat the option for each.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) uplink: Vec<String>,
    /// The relay.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) relay: String,
    /// File with the secret that client and relay share.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: PathBuf,
    /// Data that all probes together may take, in both directions.
    #[arg(long, value_name = "SIZE", default_value = "40MB")]
    pub(crate) budget: String,
    /// Print the commands that set up and take down the network, and run none of them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the uplinks as a scenario to this file, for anabranch run and anabranch advise.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// User that the process without privileges becomes [default: nobody].
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
}

impl MeasureOptions {
    /// The budget in bytes.
    ///
    /// # Errors
    /// One line that names the option, its value, and what would be right.
    pub(crate) fn budget(&self) -> Result<u64, String> {
        let parsed = self.budget.parse().map_err(|error| format!("budget: {error}"));
        let bytes = ByteCount::as_u64(parsed?);
        let least = LEAST_BUDGET * self.uplink.len().max(1) as u64;
        if bytes < least {
            let (written, megabytes) = (&self.budget, least / 1_000_000);
            return Err(format!("budget: {written} is too little; write at least {megabytes}MB"));
        }
        Ok(bytes)
    }

    /// The interfaces.
    ///
    /// # Errors
    /// One line that names the option, its value, and what would be right.
    pub(crate) fn interfaces(&self) -> Result<Vec<String>, String> {
        let named = uplinks::parse(&self.uplink)?;
        if named.iter().any(|uplink| uplink.budget.is_some()) {
            return Err("uplink: a measurement has one budget for all uplinks, --budget".into());
        }
        match named.len() {
            0 => Err("uplink: name at least one interface, for example --uplink eth0".into()),
            count if count > crate::setup::MOST_UPLINKS => {
                Err(format!("uplink: at most {} are possible", crate::setup::MOST_UPLINKS))
            }
            _ => Ok(named.into_iter().map(|uplink| uplink.interface).collect()),
        }
    }

    /// The options that this command shares with the others. A probe uses the congestion control of
    /// most hosts.
    pub(crate) fn common(&self) -> CommonOptions {
        CommonOptions {
            secret_file: Some(self.secret_file.clone()),
            user: self.user.clone(),
            dry_run: self.dry_run,
            congestion_control: Some("cubic".to_owned()),
            remedies: Some("none".parse().expect("a name")),
            ..CommonOptions::default()
        }
    }
}

/// Options of a relay.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RelayOptions {
    /// Options of both ends.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) common: CommonOptions,
    /// Port for clients.
    #[arg(long, value_name = "PORT")]
    pub(crate) listen: Option<u16>,
    /// Range of special addresses (private, link-local and so on) that clients may reach; repeat the
    /// option for each.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) allow: Vec<String>,
    /// Range of addresses that clients may not reach; repeat the option for each. It has precedence
    /// over --allow.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) deny: Vec<String>,
    /// Most connections at a time [default: 1024].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_connections: Option<usize>,
    /// Most connections of one client address at a time [default: 256].
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_connections_per_client: Option<usize>,
}

or!(RelayOptions:
    options listen max_connections max_connections_per_client,
    lists allow deny, flags, parts common);

impl CommonOptions {
    /// The policies.
    pub(crate) fn policies(&self) -> Policies {
        Policies {
            scheduler: self.scheduler.clone(),
            congestion_control: self.congestion_control.clone(),
            remedies: self.remedies.clone(),
            buffer: self.buffer.clone(),
        }
    }

    /// The capture that the options ask for.
    ///
    /// # Errors
    /// One line that names the option, its value, and what would be right.
    pub(crate) fn capture(&self) -> Result<Option<CaptureOrder>, String> {
        let limit: ByteCount = self
            .pcap_limit
            .as_deref()
            .unwrap_or(CAPTURE_LIMIT)
            .parse()
            .map_err(|error| format!("pcap_limit: {error}"))?;
        let snap = self.snap.unwrap_or(0);
        if self.snap.is_some_and(|snap| !(1..=65_535).contains(&snap)) {
            return Err(format!("snap: {snap} is no number of bytes from 1 to 65535"));
        }
        if self.pcap.is_none() && (self.snap.is_some() || self.pcap_limit.is_some()) {
            return Err("snap and pcap_limit: they need pcap, the file of the capture".into());
        }
        // qlog needs the headers only.
        let snap = if self.pcap.is_none() { QLOG_SNAP } else { snap };
        let wanted = self.pcap.is_some() || self.qlog.is_some();
        Ok(wanted.then_some(CaptureOrder { snap, limit: limit.as_u64() }))
    }

    fn check(&self) -> Result<(), String> {
        self.policies().config()?;
        self.capture()?;
        let is_right =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if let Some(name) = self.name.as_deref()
            && (!(1..=12).contains(&name.len()) || !name.bytes().all(is_right))
        {
            return Err(format!(
                "name: {name:?} needs 1 to 12 lower-case letters, digits and hyphens"
            ));
        }
        Ok(())
    }
}

impl ClientOptions {
    /// Uplinks, and then backups.
    ///
    /// # Errors
    /// One line that names the option, its value, and what would be right.
    pub(crate) fn uplinks(&self) -> Result<Vec<NamedUplink>, String> {
        uplinks::parse(self.common.uplink.iter().chain(&self.backup))
    }

    /// The options with those of their file, checked.
    ///
    /// # Errors
    /// One line that names the file, the option, its value, and what would be right.
    pub(crate) fn complete(self) -> Result<Self, String> {
        let file = self.common.config.clone();
        let options = with_file(self, file.as_deref(), Self::or)?;
        let common = &options.common;
        common.check()?;
        let uplinks = options.uplinks()?;
        if common.uplink.is_empty() {
            return Err("uplink: name at least one interface, for example --uplink eth0".into());
        }
        if !options.backup.is_empty() && common.uplink.len() > 1 {
            return Err(format!(
                "backup: with a backup, there is one uplink, not {}",
                common.uplink.len()
            ));
        }
        if uplinks.len() > crate::setup::MOST_UPLINKS {
            return Err(format!("uplink: at most {} are possible", crate::setup::MOST_UPLINKS));
        }
        if options.relay.is_some() != common.secret_file.is_some() {
            return Err("relay and secret_file: a client needs both, or none of them".into());
        }
        Ok(options)
    }
}

impl RelayOptions {
    /// The options with those of their file, checked.
    ///
    /// # Errors
    /// One line that names the file, the option, its value, and what would be right.
    pub(crate) fn complete(self) -> Result<Self, String> {
        let file = self.common.config.clone();
        let options = with_file(self, file.as_deref(), Self::or)?;
        options.common.check()?;
        if uplinks::parse(&options.common.uplink)?.iter().any(|uplink| uplink.budget.is_some()) {
            return Err("uplink: a budget belongs to the uplinks of a client".into());
        }
        if options.common.secret_file.is_none() {
            return Err("secret_file: a relay never runs without a secret; make one with: \
                        openssl rand -base64 32 > secret; chmod 600 secret"
                .into());
        }
        if options.listen.is_none_or(|port| port == 0) {
            return Err("listen: name the port for clients, for example --listen 5124".into());
        }
        for (key, ranges) in [("allow", &options.allow), ("deny", &options.deny)] {
            for range in ranges {
                range.parse::<Prefix>().map_err(|problem| format!("{key}: {problem}"))?;
            }
        }
        Ok(options)
    }
}

fn with_file<T: DeserializeOwned>(
    options: T,
    file: Option<&Path>,
    or: impl Fn(T, T) -> T,
) -> Result<T, String> {
    let Some(file) = file else { return Ok(options) };
    let named = |problem: String| format!("{}: {problem}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    let read = toml::from_str(&text).map_err(|error| named(one_line(&text, &error)))?;
    Ok(or(options, read))
}

/// An error of TOML in one line.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', "; ");
    let Some(span) = error.span() else { return message };
    let line = text.get(..span.start).unwrap_or(text).matches('\n').count() + 1;
    format!("line {line}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(arguments: &[&str]) -> Result<ClientOptions, String> {
        let all = ["anabranch-proxy", "client"].into_iter().chain(arguments.iter().copied());
        match Cli::try_parse_from(all).map_err(|error| error.to_string())?.command {
            Command::Client(options) => options.complete(),
            other => Err(format!("{other:?}")),
        }
    }

    fn relay(arguments: &[&str]) -> Result<RelayOptions, String> {
        let all = ["anabranch-proxy", "relay"].into_iter().chain(arguments.iter().copied());
        match Cli::try_parse_from(all).map_err(|error| error.to_string())?.command {
            Command::Relay(options) => options.complete(),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_relay_never_starts_without_a_secret() {
        let message = relay(&["--listen", "5124"]).expect_err("it would be open");
        assert!(message.starts_with("secret_file: a relay never runs without"), "{message}");
    }

    #[test]
    fn mistakes_are_named() {
        let secret = ["--secret-file", "s", "--relay", "r:1"];
        for (arguments, start) in [
            (&[][..], "uplink: "),
            (&["--uplink", "eth0", "--uplink", "eth0"], "uplink: eth0 is named twice"),
            (&["--uplink", "eth0;reboot"], "uplink: \"eth0;reboot\" is no name"),
            (&["--uplink", "eth0\" drop"], "uplink: "),
            (&["--uplink", "eth0", "--backup", "eth0"], "uplink: eth0 is named twice"),
            (&["--uplink", "eth0", "--uplink", "eth1", "--backup", "wwan0"], "backup: "),
            (&["--uplink", "eth0", "--name", "A B"], "name: \"A B\""),
            (&["--uplink", "eth0", "--scheduler", "blast"], "scheduler: "),
            (&["--uplink", "eth0", "--buffer", "much"], "buffer: "),
            (&["--uplink", "eth0,budget=some"], "uplink: budget: "),
            (&["--uplink", "eth0", "--snap", "128"], "snap and pcap_limit: "),
            (&["--uplink", "eth0", "--qlog", "f", "--snap", "128"], "snap and pcap_limit: "),
            (&["--uplink", "eth0", "--pcap", "f", "--snap", "0"], "snap: 0 is no number"),
            (&["--uplink", "eth0", "--pcap", "f", "--pcap-limit", "big"], "pcap_limit: "),
        ] {
            let message = client(&[arguments, &secret].concat()).expect_err("a mistake");
            assert!(message.starts_with(start), "{arguments:?}: {message}");
        }
        let message = client(&["--uplink", "eth0", "--relay", "r:1"]).expect_err("no secret");
        assert!(message.starts_with("relay and secret_file: "), "{message}");
        for key in ["allow", "deny"] {
            let option = format!("--{key}");
            let range = ["--listen", "1", "--secret-file", "s", &option, "here"];
            let message = relay(&range).expect_err("no range");
            assert!(message.starts_with(&format!("{key}: \"here\"")), "{message}");
        }
        assert!(
            relay(&["--listen", "0", "--secret-file", "s"]).expect_err("0").starts_with("listen")
        );
    }

    #[test]
    fn mistakes_in_a_measurement_are_named() {
        let measure = |more: &[&str]| {
            let all = ["anabranch-proxy", "measure", "--relay", "r:1", "--secret-file", "s"];
            match Cli::try_parse_from(all.iter().chain(more)).expect("known options").command {
                Command::Measure(options) => {
                    options.interfaces().and_then(|_| options.budget()).expect_err("a mistake")
                }
                other => panic!("{other:?}"),
            }
        };
        for (more, start) in [
            (&[][..], "uplink: name at least one"),
            (&["--uplink", "eth0,budget=1MB"], "uplink: a measurement has one budget"),
            (&["--uplink", "eth0", "--budget", "much"], "budget: "),
            (&["--uplink", "a", "--uplink", "b", "--budget", "1MB"], "budget: 1MB is too little"),
        ] {
            assert!(measure(more).starts_with(start), "{more:?}: {}", measure(more));
        }
    }

    #[test]
    fn a_file_has_the_same_keys_and_comes_second() {
        let folder = std::env::temp_dir().join(format!("anabranch-options-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("client.toml");
        let text = "uplink = [\"eth0\", \"wwan0\"]\nrelay = \"r:1\"\nsecret_file = \"s\"\n\
                    scheduler = { kind = \"blest\" }\nlisten = \"127.0.0.1:1081\"\n";
        std::fs::write(&file, text).expect("written");
        let path = file.to_str().expect("a path");
        let options = client(&["--config", path, "--listen", "127.0.0.1:1082"]).expect("right");
        assert_eq!(options.common.uplink, ["eth0", "wwan0"]);
        assert_eq!(options.listen.map(|listen| listen.port()), Some(1082));
        assert!(options.common.scheduler.is_some());
        std::fs::write(&file, format!("{text}uplinks = []\n")).expect("written");
        let message = client(&["--config", path]).expect_err("an unknown key");
        assert!(message.contains("uplinks") && !message.contains('\n'), "{message}");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
