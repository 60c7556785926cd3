//! The engine's options for connections, from the names that users give.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use anabranch_net::Side;
use anabranch_proto::config::{ConnectionConfig, Interfaces};
use anabranch_sim::driver::connection_config;
use anabranch_sim::scenario::{Scenario, ScenarioError};
use anabranch_wire::Duration;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Time in TIME-WAIT (this project). Old segments do not outlive it on usual paths, and each
/// connection there takes memory.
const TIME_WAIT: Duration = Duration::from_secs(10);
/// Idle time before a keep-alive probe (this project), so that NATs do not forget a connection: many
/// home routers do after some minutes.
const KEEP_ALIVE: &str = "60s";
/// Time without an acknowledgement before a subflow is given up (this project).
const USER_TIMEOUT: Duration = Duration::from_secs(120);
/// Send buffer and receive buffer of a connection (this project): 100 Mbit/s at 300 ms.
const BUFFER: &str = "4MiB";

/// A name, or a table with a kind and parameters, as in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PolicyArgument(pub(crate) Value);

impl FromStr for PolicyArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('{') {
            return Ok(PolicyArgument(Value::String(text.to_owned())));
        }
        let table: Result<Table, _> = format!("value = {text}").parse();
        let value = table.ok().and_then(|mut table| table.remove("value"));
        value.map(PolicyArgument).ok_or_else(|| format!("{text:?} is no TOML table"))
    }
}

impl fmt::Display for PolicyArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The policies of connections. `None` is this program's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Policies {
    /// Scheduler.
    pub(crate) scheduler: Option<PolicyArgument>,
    /// Congestion control of each subflow.
    pub(crate) congestion_control: Option<String>,
    /// Remedies: names with commas between them, `none`, or a table.
    pub(crate) remedies: Option<PolicyArgument>,
    /// Size of the send buffer and of the receive buffer.
    pub(crate) buffer: Option<String>,
}

impl Policies {
    /// The options of connections.
    ///
    /// # Errors
    /// One line that names the option, its value, and what would be right.
    pub(crate) fn config(&self) -> Result<ConnectionConfig, String> {
        let text = self.scenario().to_string();
        let scenario = Scenario::from_toml(&text, "options").map_err(|error| explain(&error))?;
        let config = connection_config(&scenario, 0, Side::Client, 0, &[])
            .map_err(|error| format!("{error}; this program has built-in policies only"))?;
        let tcp = config.tcp.clone().time_wait(TIME_WAIT).user_timeout(Some(USER_TIMEOUT));
        // RFC 8803 §3: requests come in SYNs. A repeated one is refused by its proof.
        let tcp = tcp.fast_open(true);
        Ok(config.tcp(tcp).interfaces(None).local_addresses(None))
    }

    /// A scenario whose connection has these policies. Its path has no meaning.
    fn scenario(&self) -> Table {
        let text = |text: &str| Value::String(text.to_owned());
        let buffer = self.buffer.as_deref().unwrap_or(BUFFER);
        let mut connection = Table::new();
        connection.insert("send_buffer".into(), text(buffer));
        connection.insert("receive_buffer".into(), text(buffer));
        connection.insert("keep_alive".into(), text(KEEP_ALIVE));
        // The programs' own sockets decide whether to wait for more data.
        connection.insert("nagle".into(), Value::Boolean(false));
        connection.insert("workload".into(), named_table("bulk"));
        connection.insert("remedies".into(), Value::Table(self.remedies()));
        if let Some(PolicyArgument(scheduler)) = &self.scheduler {
            connection.insert("scheduler".into(), scheduler.clone());
        }
        if let Some(name) = &self.congestion_control {
            connection.insert("congestion_control".into(), text(name));
        }
        let path =
            [("name", "uplink"), ("rate", "1Gbit/s"), ("delay", "1ms"), ("limit", "100packets")];
        let path = path.map(|(key, value)| (key.to_owned(), text(value)));
        let tables = |table: Table| Value::Array(vec![Value::Table(table)]);
        Table::from_iter([
            ("name".to_owned(), text("proxy")),
            ("duration".to_owned(), text("1s")),
            ("path".to_owned(), tables(Table::from_iter(path))),
            ("connection".to_owned(), tables(connection)),
        ])
    }

    /// By default the two remedies of NSDI 2012 against a window that a slow subflow fills (M1 and
    /// M2).
    fn remedies(&self) -> Table {
        let names = match &self.remedies {
            Some(PolicyArgument(Value::Table(table))) => return table.clone(),
            Some(PolicyArgument(Value::String(names))) => names.as_str(),
            Some(_) => "?",
            None => "opportunistic_retransmission,penalisation",
        };
        let names = names.split(',').map(str::trim).filter(|name| *name != "none");
        names.map(|name| (name.to_owned(), Value::Boolean(true))).collect()
    }
}

fn named_table(kind: &str) -> Value {
    Value::Table(Table::from_iter([("kind".to_owned(), Value::String(kind.to_owned()))]))
}

/// The error in the words of the options.
fn explain(error: &ScenarioError) -> String {
    let key = error.place().trim_start_matches("connection[0].");
    let key = if key.ends_with("_buffer") { "buffer" } else { key };
    format!("{key}: {}", error.problem())
}

/// The same options for a host whose interfaces have these addresses and MTUs in bytes.
pub(crate) fn with_interfaces(
    config: ConnectionConfig,
    mtus: Vec<(IpAddr, u16)>,
) -> ConnectionConfig {
    config.interfaces(Some(Arc::new(Interfaces { mtus, unreachable: Vec::new() })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(text: &str) -> Option<PolicyArgument> {
        Some(text.parse().expect("written correctly"))
    }

    #[test]
    fn names_and_tables_select_policies() {
        let policies = Policies {
            scheduler: argument("{ kind = \"blest\" }"),
            congestion_control: Some("cubic".to_owned()),
            remedies: argument("none"),
            buffer: Some("32KiB".to_owned()),
        };
        let config = policies.config().expect("all exist");
        assert_eq!((config.send_buffer, config.receive_buffer), (Some(32_768), Some(32_768)));
        assert!((config.remedies)().is_empty() && !config.tcp.nagle);
        let default = Policies::default().config().expect("all exist");
        assert_eq!((default.remedies)().len(), 2);
    }

    #[test]
    fn errors_name_the_option_and_what_is_right() {
        let scheduler = Policies { scheduler: argument("blast"), ..Policies::default() };
        let message = scheduler.config().expect_err("there is none");
        assert!(message.starts_with("scheduler: ") && message.contains("blest"), "{message}");
        let buffer = Policies { buffer: Some("much".to_owned()), ..Policies::default() };
        assert!(buffer.config().expect_err("no size").starts_with("buffer: "));
        let remedies = Policies { remedies: argument("cure"), ..Policies::default() };
        let message = remedies.config().expect_err("there is none");
        assert!(message.contains("cure"), "{message}");
        assert!("{ kind = ".parse::<PolicyArgument>().is_err());
    }
}
