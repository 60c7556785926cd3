//! Names of the user's own policies, which replace a scenario's policies.

use super::connection::Connection;
use super::{Policy, Protocol, Scenario};

/// Names of the user's own policies, which replace a scenario's policies. `None` keeps the
/// scenario's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomNames {
    /// Name of the scheduler.
    pub scheduler: Option<String>,
    /// Name of the congestion control.
    pub congestion_control: Option<String>,
    /// Name of the path manager.
    pub path_manager: Option<String>,
}

impl Scenario {
    /// The scenario with the user's own policies `names`. They apply to the connections that already
    /// name the user's own policy. If there is none, they apply to all Multipath TCP connections.
    #[must_use]
    pub fn with_custom(mut self, names: &CustomNames) -> Self {
        put(&mut self, names.scheduler.as_deref(), |c| &mut c.scheduler);
        put(&mut self, names.congestion_control.as_deref(), |c| &mut *c.congestion_control);
        put(&mut self, names.path_manager.as_deref(), |c| &mut c.path_manager);
        for connection in &mut self.connections {
            // The user's own congestion control ends slow start itself.
            *connection.hystart &= connection.congestion_control.custom().is_none();
        }
        self
    }
}

fn put<T>(
    scenario: &mut Scenario,
    name: Option<&str>,
    slot: fn(&mut Connection) -> &mut Policy<T>,
) {
    let Some(name) = name else { return };
    let connections = &mut scenario.connections;
    let marked = connections.iter_mut().any(|connection| slot(connection).custom().is_some());
    for connection in connections {
        let mptcp = connection.protocol == Protocol::Mptcp;
        let policy = slot(connection);
        if if marked { policy.custom().is_some() } else { mptcp } {
            *policy = Policy::Custom(name.to_owned());
        }
    }
}
