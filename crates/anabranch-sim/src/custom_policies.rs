//! User-defined policies. A scenario can only name them, so they are passed with the run.

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

/// The connection end that a policy is created for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of the connection.
    pub connection: String,
    /// The end of the connection at which the policy acts.
    pub side: Side,
    /// Names of the connection's paths.
    pub paths: PathNames,
    /// Seed of the run.
    pub seed: u64,
}

/// Names of a connection's paths, in the order of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathNames(Arc<[String]>);

impl PathNames {
    /// The path names of `connection`.
    pub(crate) fn of(connection: &Connection, scenario: &Scenario) -> Self {
        PathNames(connection.paths.iter().map(|path| scenario.paths[*path].name.clone()).collect())
    }

    /// The path of a subflow, as seen from `side`. The client's address on path *n* has Address ID
    /// *n*. RFC 8684 §3.2.
    pub fn of_subflow(&self, side: Side, subflow: &SubflowView) -> Option<&str> {
        let id = match side {
            Side::Client => subflow.local_address_id,
            Side::Server => subflow.remote_address_id,
        };
        self.0.get(usize::from(id)).map(String::as_str)
    }
}

/// Creates the scheduler of one end of a connection.
pub type CustomScheduler = Arc<dyn Fn(&Owner) -> Box<dyn Scheduler> + Send + Sync>;
/// Creates the congestion control of a subflow at one end of a connection.
pub type CustomCongestionControl =
    Arc<dyn Fn(&Owner, &Start) -> Box<dyn CongestionControl> + Send + Sync>;
/// Creates the path manager of one end of a connection.
pub type CustomPathManager = Arc<dyn Fn(&Owner) -> Box<dyn PathManager> + Send + Sync>;

/// The user-defined policies of one connection: exactly those that the scenario names with
/// `custom:NAME`.
#[derive(Clone, Default)]
pub struct CustomPolicies {
    /// Chooses the subflow for the next data.
    pub scheduler: Option<CustomScheduler>,
    /// Congestion control of each subflow.
    pub congestion_control: Option<CustomCongestionControl>,
    /// Decides which subflows exist.
    pub path_manager: Option<CustomPathManager>,
}

/// The scenario and the policies passed with the run do not match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CustomPoliciesError {
    /// The scenario names a user-defined policy that was not passed with the run.
    #[error(
        "connection {connection:?}: {kind} = \"custom:{name}\" is a user-defined policy, but none was \
        passed with the run; pass one (scenario: {kind} = \"FILE.py:CLASS\", command line: --{option} \
        FILE.py:CLASS, Python: Connection({kind}=CLASS), Rust: Options::custom_policies), or name a \
        built-in policy"
    )]
    Missing {
        /// Name of the connection.
        connection: String,
        /// `scheduler`, `congestion_control` or `path_manager`.
        kind: &'static str,
        /// The corresponding command-line option.
        option: String,
        /// Name of the policy in the scenario.
        name: String,
    },
    /// A policy was passed with the run, but the scenario names a built-in policy.
    #[error(
        "connection {connection:?}: a {kind} was passed with the run, but the scenario names a \
        built-in one; write {kind} = \"custom:NAME\""
    )]
    Unnamed {
        /// Name of the connection.
        connection: String,
        /// `scheduler`, `congestion_control` or `path_manager`.
        kind: &'static str,
    },
}

impl Owner {
    /// Seed of a random stream for this policy only. `component` distinguishes several streams of
    /// the same policy.
    pub fn stream_seed(&self, component: &str) -> u64 {
        let Owner { connection, side, seed, .. } = self;
        rng::stream_seed(*seed, &format!("policy/{connection}/{side}/{component}"))
    }
}

impl CustomPolicies {
    /// Policies with this scheduler only.
    pub fn scheduler(make: impl Fn(&Owner) -> Box<dyn Scheduler> + Send + Sync + 'static) -> Self {
        CustomPolicies { scheduler: Some(Arc::new(make)), ..CustomPolicies::default() }
    }

    /// Policies with this congestion control only.
    pub fn congestion_control(
        make: impl Fn(&Owner, &Start) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        CustomPolicies { congestion_control: Some(Arc::new(make)), ..CustomPolicies::default() }
    }

    /// Policies with this path manager only.
    pub fn path_manager(
        make: impl Fn(&Owner) -> Box<dyn PathManager> + Send + Sync + 'static,
    ) -> Self {
        CustomPolicies { path_manager: Some(Arc::new(make)), ..CustomPolicies::default() }
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

    /// Check that these are exactly the user-defined policies that `connection` names.
    fn check(&self, connection: &Connection) -> Result<(), CustomPoliciesError> {
        let CustomPolicies { scheduler, congestion_control, path_manager } = self;
        check("scheduler", connection, &connection.scheduler, scheduler.is_some())?;
        let named = &connection.congestion_control;
        check("congestion_control", connection, named, congestion_control.is_some())?;
        check("path_manager", connection, &connection.path_manager, path_manager.is_some())
    }
}

/// Check that `policies` holds exactly the user-defined policies that the connections of `scenario`
/// name.
pub(crate) fn check_all(
    scenario: &Scenario,
    policies: &[CustomPolicies],
) -> Result<(), CustomPoliciesError> {
    let none = CustomPolicies::default();
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
) -> Result<(), CustomPoliciesError> {
    let connection = connection.name.clone();
    match named.custom() {
        Some(name) if !is_given => {
            let (name, option) = (name.to_owned(), kind.replace('_', "-"));
            Err(CustomPoliciesError::Missing { connection, kind, option, name })
        }
        None if is_given => Err(CustomPoliciesError::Unnamed { connection, kind }),
        _ => Ok(()),
    }
}

impl fmt::Debug for CustomPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomPolicies")
            .field("scheduler", &self.scheduler.is_some())
            .field("congestion_control", &self.congestion_control.is_some())
            .field("path_manager", &self.path_manager.is_some())
            .finish()
    }
}
