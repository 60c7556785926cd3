//! Policies of the user's own: handed over with the run, because a scenario can only name them.

use std::fmt;
use std::sync::Arc;

use anabranch_net::{Side, rng};
use anabranch_proto::config::{CongestionControlFactory, PathManagerFactory, SchedulerFactory};
use anabranch_proto::congestion::{CongestionControl, Start};
use anabranch_proto::path_manager::PathManager;
use anabranch_proto::scheduler::Scheduler;
use anabranch_proto::view::SubflowView;
use thiserror::Error;

use crate::scenario::{Connection, Policy, Scenario};

/// Whom a policy is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of the connection.
    pub connection: String,
    /// The end of the connection that the policy acts at.
    pub side: Side,
    /// Names of the connection's paths.
    pub paths: PathNames,
    /// Seed of the run.
    pub seed: u64,
}

/// Names of a connection's paths, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames(Arc<[String]>);

impl PathNames {
    /// Those of a connection.
    pub(crate) fn of(connection: &Connection, scenario: &Scenario) -> Self {
        PathNames(connection.paths.iter().map(|path| scenario.paths[*path].name.clone()).collect())
    }

    /// The path of a subflow, seen from `side`. The client's address on path *n* has the Address
    /// ID *n*. RFC 8684 §3.2.
    pub fn of_subflow(&self, side: Side, subflow: &SubflowView) -> Option<&str> {
        let id = match side {
            Side::Client => subflow.local_address_id,
            Side::Server => subflow.remote_address_id,
        };
        self.0.get(usize::from(id)).map(String::as_str)
    }
}

/// Makes the scheduler of one end of a connection.
pub type OwnScheduler = Arc<dyn Fn(&Owner) -> Box<dyn Scheduler> + Send + Sync>;
/// Makes the congestion control of a subflow at one end of a connection.
pub type OwnCongestionControl =
    Arc<dyn Fn(&Owner, &Start) -> Box<dyn CongestionControl> + Send + Sync>;
/// Makes the path manager of one end of a connection.
pub type OwnPathManager = Arc<dyn Fn(&Owner) -> Box<dyn PathManager> + Send + Sync>;

/// The policies of the user's own of one connection: exactly those that the scenario calls
/// `own:NAME`.
#[derive(Clone, Default)]
pub struct OwnPolicies {
    /// Which subflow carries the next data.
    pub scheduler: Option<OwnScheduler>,
    /// Congestion control of each subflow.
    pub congestion_control: Option<OwnCongestionControl>,
    /// Which subflows exist.
    pub path_manager: Option<OwnPathManager>,
}

/// The scenario and the policies that came with the run do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OwnPoliciesError {
    /// The scenario names a policy of the user's own, and it was not handed over.
    #[error(
        "connection {connection:?}: {kind} = \"own:{name}\" is a policy of the user's own, which \
         a scenario can only name; hand it over with the run (command line: --{option} \
         FILE.py:CLASS, Python: Connection({kind}=CLASS), Rust: Options::own_policies), or name a \
         built-in one"
    )]
    Missing {
        /// Name of the connection.
        connection: String,
        /// `scheduler`, `congestion_control` or `path_manager`.
        kind: &'static str,
        /// The same as an option of the command line.
        option: String,
        /// Name of the policy in the scenario.
        name: String,
    },
    /// A policy was handed over, and the scenario names a built-in one.
    #[error(
        "connection {connection:?}: a {kind} came with the run, but the scenario names a built-in \
         one; write {kind} = \"own:NAME\""
    )]
    Unnamed {
        /// Name of the connection.
        connection: String,
        /// `scheduler`, `congestion_control` or `path_manager`.
        kind: &'static str,
    },
}

impl Owner {
    /// Seed of a stream of random numbers that nobody else draws from; `component` tells the
    /// streams of one owner apart.
    pub fn stream_seed(&self, component: &str) -> u64 {
        let Owner { connection, side, seed, .. } = self;
        rng::stream_seed(*seed, &format!("policy/{connection}/{side}/{component}"))
    }
}

impl OwnPolicies {
    /// Those with this scheduler.
    pub fn scheduler(make: impl Fn(&Owner) -> Box<dyn Scheduler> + Send + Sync + 'static) -> Self {
        OwnPolicies { scheduler: Some(Arc::new(make)), ..OwnPolicies::default() }
    }

    /// Those with this congestion control.
    pub fn congestion_control(
        make: impl Fn(&Owner, &Start) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        OwnPolicies { congestion_control: Some(Arc::new(make)), ..OwnPolicies::default() }
    }

    /// Those with this path manager.
    pub fn path_manager(
        make: impl Fn(&Owner) -> Box<dyn PathManager> + Send + Sync + 'static,
    ) -> Self {
        OwnPolicies { path_manager: Some(Arc::new(make)), ..OwnPolicies::default() }
    }

    pub(crate) fn scheduler_factory(&self, owner: &Owner) -> SchedulerFactory {
        let (make, owner) = (self.scheduler.clone().expect("it was checked"), owner.clone());
        Arc::new(move || make(&owner))
    }

    pub(crate) fn congestion_control_factory(&self, owner: &Owner) -> CongestionControlFactory {
        let (make, owner) =
            (self.congestion_control.clone().expect("it was checked"), owner.clone());
        Arc::new(move |start| make(&owner, start))
    }

    pub(crate) fn path_manager_factory(&self, owner: &Owner) -> PathManagerFactory {
        let (make, owner) = (self.path_manager.clone().expect("it was checked"), owner.clone());
        Arc::new(move || make(&owner))
    }

    /// Are exactly those here that `connection` names?
    fn check(&self, connection: &Connection) -> Result<(), OwnPoliciesError> {
        let OwnPolicies { scheduler, congestion_control, path_manager } = self;
        check("scheduler", connection, &connection.scheduler, scheduler.is_some())?;
        let named = &connection.congestion_control;
        check("congestion_control", connection, named, congestion_control.is_some())?;
        check("path_manager", connection, &connection.path_manager, path_manager.is_some())
    }
}

/// Does `policies` hold exactly the policies of the user's own that the connections of `scenario`
/// name?
pub(crate) fn check_all(
    scenario: &Scenario,
    policies: &[OwnPolicies],
) -> Result<(), OwnPoliciesError> {
    let none = OwnPolicies::default();
    scenario
        .connections
        .iter()
        .enumerate()
        .try_for_each(|(index, connection)| policies.get(index).unwrap_or(&none).check(connection))
}

fn check<T>(
    kind: &'static str,
    connection: &Connection,
    named: &Policy<T>,
    is_given: bool,
) -> Result<(), OwnPoliciesError> {
    let connection = connection.name.clone();
    match named.own() {
        Some(name) if !is_given => {
            let (name, option) = (name.to_owned(), kind.replace('_', "-"));
            Err(OwnPoliciesError::Missing { connection, kind, option, name })
        }
        None if is_given => Err(OwnPoliciesError::Unnamed { connection, kind }),
        _ => Ok(()),
    }
}

impl fmt::Debug for OwnPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnPolicies")
            .field("scheduler", &self.scheduler.is_some())
            .field("congestion_control", &self.congestion_control.is_some())
            .field("path_manager", &self.path_manager.is_some())
            .finish()
    }
}
