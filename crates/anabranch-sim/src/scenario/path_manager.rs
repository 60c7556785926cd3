//! The path manager of a connection: by name, or as a table with parameters.

use core::num::NonZeroU32;

use anabranch_wire::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Path;
use super::choice::{Choice, KindTable, refuse_foreign};
use super::error::{Problem, unknown_name};
use super::factor::Factor;
use super::names::PathManagerKind;
use super::written::Written;

/// A path manager and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathManager {
    /// A subflow over every path of the connection.
    FullMesh,
    /// No subflow besides the first.
    InitialOnly,
    /// Several subflows over the first path.
    Ndiffports {
        /// How many in all, at most [`PathManager::MOST_SUBFLOWS`].
        subflows: NonZeroU32,
    },
    /// A subflow over every path, all but one as backups.
    Backup {
        /// The one that is no backup, as an index into the connection's paths.
        regular: usize,
    },
    /// One subflow at a time.
    SinglePath,
    /// Paths much slower than the best carry nothing but probes.
    Drepas {
        /// Throughput relative to the best path's from which on a path is used, at most 1.
        threshold: Factor,
        /// Shortest time between scores, above zero.
        period: Duration,
        /// Scores in a row that change what a path is used for.
        hysteresis: NonZeroU32,
    },
}

/// A table with the keys of all kinds; those of other kinds are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "PathManager")]
pub(super) struct PathManagerTable {
    /// Kind of path manager.
    pub(super) kind: PathManagerKind,
    /// `ndiffports` only: how many subflows, the first included, up to 32; by default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub(super) subflows: Option<NonZeroU32>,
    /// `backup` only: name of the path that is no backup; by default the connection's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) regular: Option<String>,
    /// `drepas` only: throughput relative to the best path's from which on a path is used, up to
    /// 1; by default 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Factor")]
    pub(super) threshold: Option<Factor>,
    /// `drepas` only: shortest time between two scores, by default 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Written<Duration>")]
    pub(super) period: Option<Written<Duration>>,
    /// `drepas` only: scores in a row that change what a path is used for, by default 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub(super) hysteresis: Option<NonZeroU32>,
}

/// What the file holds: a name or a table.
pub(super) type PathManagerValue = Choice<PathManagerTable>;

impl KindTable for PathManagerTable {
    type Kind = PathManagerKind;
    const EXAMPLE: &'static str = "\"full_mesh\"";

    fn of_kind(kind: PathManagerKind) -> Self {
        PathManagerTable { kind, ..PathManagerTable::default() }
    }

    fn kind(&self) -> PathManagerKind {
        self.kind
    }
}

/// As of the Linux implementation.
const NDIFFPORTS_SUBFLOWS: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// The paper states none of the three: they are ours.
const DREPAS_THRESHOLD: Factor = Factor::from_thousandths(100);
const DREPAS_PERIOD: Duration = Duration::from_secs(1);
const DREPAS_HYSTERESIS: NonZeroU32 = NonZeroU32::new(2).unwrap();

impl PathManager {
    /// Subflows that a connection can have.
    pub const MOST_SUBFLOWS: u32 = 32;
}

impl PathManagerTable {
    /// The path manager that the table at `key` describes, of a connection that uses those of
    /// `paths` with the indices `used`.
    pub(super) fn resolve(
        self,
        key: &str,
        paths: &[Path],
        used: &[usize],
    ) -> Result<PathManager, Problem> {
        self.refuse_foreign_keys(key)?;
        Ok(match self.kind {
            PathManagerKind::FullMesh => PathManager::FullMesh,
            PathManagerKind::InitialOnly => PathManager::InitialOnly,
            PathManagerKind::Ndiffports => {
                let subflows = self.subflows.unwrap_or(NDIFFPORTS_SUBFLOWS);
                require_at_most(&format!("{key}.subflows"), subflows)?;
                PathManager::Ndiffports { subflows }
            }
            PathManagerKind::Backup => {
                let index = |name| position(&format!("{key}.regular"), name, paths, used);
                PathManager::Backup { regular: self.regular.as_deref().map_or(Ok(0), index)? }
            }
            PathManagerKind::SinglePath => PathManager::SinglePath,
            PathManagerKind::Drepas => self.resolve_drepas(key)?,
        })
    }

    fn resolve_drepas(&self, key: &str) -> Result<PathManager, Problem> {
        let threshold = self.threshold.unwrap_or(DREPAS_THRESHOLD);
        if threshold > Factor::from_thousandths(1_000) {
            let problem = format!("{threshold}: must be 1 or less");
            return Err(Problem::new(format!("{key}.threshold"), problem));
        }
        let period = self.period.map_or(DREPAS_PERIOD, |period| period.0);
        if period.is_zero() {
            let problem = "\"0s\": must be longer than zero";
            return Err(Problem::new(format!("{key}.period"), problem));
        }
        let hysteresis = self.hysteresis.unwrap_or(DREPAS_HYSTERESIS);
        Ok(PathManager::Drepas { threshold, period, hysteresis })
    }

    fn refuse_foreign_keys(&self, key: &str) -> Result<(), Problem> {
        let is = |kind| self.kind == kind;
        let (ports, backup, drepas) = (
            is(PathManagerKind::Ndiffports),
            is(PathManagerKind::Backup),
            is(PathManagerKind::Drepas),
        );
        let checks = [
            ("subflows", self.subflows.is_some(), ports, "kind = \"ndiffports\""),
            ("regular", self.regular.is_some(), backup, "kind = \"backup\""),
            ("threshold", self.threshold.is_some(), drepas, "kind = \"drepas\""),
            ("period", self.period.is_some(), drepas, "kind = \"drepas\""),
            ("hysteresis", self.hysteresis.is_some(), drepas, "kind = \"drepas\""),
        ];
        refuse_foreign(key, checks)
    }

    /// The table of a path manager, with every default spelled out.
    pub(super) fn spelled_out(manager: PathManager, paths: &[Path], used: &[usize]) -> Self {
        let kind = PathManagerTable::of_kind;
        match manager {
            PathManager::FullMesh => kind(PathManagerKind::FullMesh),
            PathManager::InitialOnly => kind(PathManagerKind::InitialOnly),
            PathManager::Ndiffports { subflows } => {
                let subflows = Some(subflows);
                PathManagerTable { subflows, ..kind(PathManagerKind::Ndiffports) }
            }
            PathManager::Backup { regular } => {
                let regular = Some(paths[used[regular]].name.clone());
                PathManagerTable { regular, ..kind(PathManagerKind::Backup) }
            }
            PathManager::SinglePath => kind(PathManagerKind::SinglePath),
            PathManager::Drepas { threshold, period, hysteresis } => PathManagerTable {
                threshold: Some(threshold),
                period: Some(Written(period)),
                hysteresis: Some(hysteresis),
                ..kind(PathManagerKind::Drepas)
            },
        }
    }
}

fn require_at_most(key: &str, subflows: NonZeroU32) -> Result<(), Problem> {
    let most = PathManager::MOST_SUBFLOWS;
    if subflows.get() > most {
        return Err(Problem::new(key, format!("{subflows}: a connection has at most {most}")));
    }
    Ok(())
}

/// Where the connection's paths `used` have the one called `name`.
fn position(key: &str, name: &str, paths: &[Path], used: &[usize]) -> Result<usize, Problem> {
    let found = used.iter().position(|index| paths[*index].name == name);
    found.ok_or_else(|| {
        let valid: Vec<_> = used.iter().map(|index| paths[*index].name.as_str()).collect();
        Problem::new(key, unknown_name("path of the connection", name, &valid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::tests::{FULL, read};
    use crate::scenario::{Policy, Scenario};

    fn with(value: &str) -> Result<Scenario, String> {
        let written = format!("path_manager = {value}");
        let text = FULL.replacen("path_manager = \"initial_only\"", &written, 1);
        assert_ne!(text, FULL);
        Scenario::from_toml(&text, "paths.toml").map_err(|error| error.to_string())
    }

    fn manager(value: &str) -> PathManager {
        let scenario = with(value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(&scenario.to_toml()), scenario);
        match scenario.connections[0].path_manager {
            Policy::BuiltIn(manager) => manager,
            Policy::Own(_) => panic!("{value} is built in"),
        }
    }

    #[test]
    fn a_path_manager_is_a_name_or_a_table() {
        let two = NonZeroU32::new(2).unwrap();
        assert_eq!(manager("\"full_mesh\""), PathManager::FullMesh);
        assert_eq!(manager("\"single_path\""), PathManager::SinglePath);
        assert_eq!(manager("\"ndiffports\""), PathManager::Ndiffports { subflows: two });
        assert_eq!(manager("\"backup\""), PathManager::Backup { regular: 0 });
        let (threshold, period) = (Factor::from_thousandths(250), Duration::from_secs(2));
        assert_eq!(
            manager("{ kind = \"drepas\", threshold = 0.25, period = \"2s\" }"),
            PathManager::Drepas { threshold, period, hysteresis: two }
        );
    }

    #[test]
    fn what_is_wrong_with_it_is_explained() {
        let problems = [
            (
                "{ kind = \"ndiffports\", subflows = 33 }",
                "path_manager.subflows: 33: a connection has at most 32",
            ),
            (
                "{ kind = \"backup\", subflows = 2 }",
                "path_manager.subflows: belongs to kind = \"ndiffports\"; leave it out",
            ),
            (
                "{ kind = \"drepas\", threshold = 1.5 }",
                "path_manager.threshold: 1.5: must be 1 or less",
            ),
            (
                "{ kind = \"drepas\", period = \"0s\" }",
                "path_manager.period: \"0s\": must be longer than zero",
            ),
        ];
        for (value, problem) in problems {
            assert_eq!(with(value).unwrap_err(), format!("paths.toml: connection[0].{problem}"));
        }
        let unknown = with("{ kind = \"backup\", regular = \"nowhere\" }").unwrap_err();
        assert!(
            unknown.contains("path_manager.regular: unknown path of the connection"),
            "{unknown}"
        );
    }
}
