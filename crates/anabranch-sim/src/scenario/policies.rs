//! The policies and platforms of a connection that can be selected by name.

use anabranch_proto::policy::{Entry, Values};
use anabranch_proto::{congestion, path_manager, platform, remedy, scheduler};

use super::selected::{Catalog, Selected};

/// Makes a remedy.
pub(super) type RemedyFactory = fn(&Values) -> Box<dyn remedy::Remedy>;

/// A platform and its parameters.
pub type Host = Selected<platform::Factory>;
/// A scheduler and its parameters.
pub type Scheduler = Selected<scheduler::Factory>;
/// A path manager and its parameters.
pub type PathManager = Selected<path_manager::Factory>;
/// A remedy and its parameters.
pub type Remedy = Selected<RemedyFactory>;

impl Catalog for platform::Factory {
    const NOUN: &'static str = "host";
    const ALL: &'static [Entry<Self>] = platform::ALL;
}

impl Catalog for scheduler::Factory {
    const NOUN: &'static str = "scheduler";
    const ALL: &'static [Entry<Self>] = scheduler::ALL;
}

impl Catalog for path_manager::Factory {
    const NOUN: &'static str = "path manager";
    const ALL: &'static [Entry<Self>] = path_manager::ALL;
}

impl Catalog for RemedyFactory {
    const NOUN: &'static str = "remedy";
    const ALL: &'static [Entry<Self>] = remedy::ALL;
}

impl Catalog for congestion::Factory {
    const NOUN: &'static str = "congestion control";
    const ALL: &'static [Entry<Self>] = congestion::ALL;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::scenario::Policy;
    use crate::scenario::tests::{FULL, read};
    use crate::scenario::{Connection, Scenario};
    use anabranch_proto::policy::{PathRef, Value};
    use anabranch_wire::Duration;

    /// The policy with this name and its defaults.
    pub(in crate::scenario) fn default_of<M: Catalog>(name: &str) -> Selected<M> {
        let Ok(entry) = Selected::named(name) else { panic!("no {name}") };
        Selected::new(entry)
    }

    pub(in crate::scenario) fn scheduler(name: &str) -> Scheduler {
        default_of(name)
    }

    pub(in crate::scenario) fn path_manager(name: &str) -> PathManager {
        default_of(name)
    }

    pub(in crate::scenario) fn host(name: &str) -> Host {
        default_of(name)
    }

    fn path(name: &'static str, index: usize) -> Value {
        Value::Path(PathRef { name: name.into(), index })
    }

    fn with(right: &str, wrong: &str) -> Result<Connection, String> {
        assert!(FULL.contains(right), "{right}");
        let scenario = Scenario::from_toml(&FULL.replacen(right, wrong, 1), "full.toml");
        let scenario = scenario.map_err(|error| error.to_string())?;
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
        Ok(scenario.connections[0].clone())
    }

    fn built_in<T>(policy: Policy<T>) -> T {
        match policy {
            Policy::BuiltIn(policy) => policy,
            Policy::Custom(name) => panic!("{name} is nobody's own"),
        }
    }

    fn chosen_scheduler(written: &str) -> Result<Scheduler, String> {
        let scheduler = format!("scheduler = {written}");
        Ok(built_in(with("scheduler = \"min_rtt\"", &scheduler)?.scheduler))
    }

    fn chosen_path_manager(written: &str) -> Result<PathManager, String> {
        let manager = format!("path_manager = {written}");
        Ok(built_in(with("path_manager = \"initial_only\"", &manager)?.path_manager))
    }

    #[test]
    fn names_are_unique_and_defaults_are_what_they_may_be() {
        fn check<M: Catalog>() {
            for (index, entry) in M::ALL.iter().enumerate() {
                assert!(M::ALL[..index].iter().all(|other| other.name != entry.name));
                assert!(!entry.source.is_empty() && entry.summary.ends_with('.'), "{}", entry.name);
                for parameter in entry.parameters {
                    assert!(!parameter.origin.is_empty() && !parameter.meaning.is_empty());
                }
            }
        }
        check::<platform::Factory>();
        check::<scheduler::Factory>();
        check::<path_manager::Factory>();
        check::<RemedyFactory>();
        check::<congestion::Factory>();
        // Write each policy with its defaults, and read it back.
        for entry in scheduler::ALL {
            let written = format!("{{ kind = {:?} }}", entry.name);
            assert_eq!(chosen_scheduler(&written), Ok(scheduler(entry.name)));
        }
        for entry in path_manager::ALL {
            let mut expected = path_manager(entry.name);
            if entry.name == "backup" {
                expected.values.set("regular", path("3g", 0));
            }
            assert_eq!(chosen_path_manager(&format!("{:?}", entry.name)), Ok(expected));
        }
    }

    #[test]
    fn a_policy_is_a_name_or_a_table() {
        let mut paper = scheduler("blest");
        paper.values.set("rule", Value::Choice("paper"));
        assert_eq!(chosen_scheduler("{ kind = \"blest\", rule = \"paper\" }"), Ok(paper.clone()));
        paper.values.set("step", Value::Number(0.005));
        let written = "{ kind = \"blest\", rule = \"paper\", step = 0.005 }";
        assert_eq!(chosen_scheduler(written), Ok(paper));
        let mut ecf = scheduler("ecf");
        ecf.values.set("beta", Value::Number(1.0));
        assert_eq!(chosen_scheduler("{ kind = \"ecf\", beta = 1 }"), Ok(ecf));
        let mut drepas = path_manager("drepas");
        drepas.values.set("period", Value::Time(Duration::from_secs(2)));
        assert_eq!(chosen_path_manager("{ kind = \"drepas\", period = \"2s\" }"), Ok(drepas));
        let mut backup = path_manager("backup");
        backup.values.set("regular", path("wifi", 1));
        assert_eq!(chosen_path_manager("{ kind = \"backup\", regular = \"wifi\" }"), Ok(backup));
    }

    #[test]
    fn what_is_wrong_with_a_scheduler_is_explained() {
        let problems = [
            (
                "3",
                ": found integer `3`, expected a name such as \"min_rtt\", or a table with a kind",
            ),
            (
                "{ kind = \"blst\", rule = \"paper\" }",
                ".kind: unknown scheduler \"blst\"; did you mean \"blest\"? (valid: min_rtt, round_robin, redundant, blest, ecf, otias, sttf, daps, linux)",
            ),
            ("{ kind = \"ecf\", betta = 0.5 }", ".betta: unknown key; did you mean \"beta\"?"),
            ("{ kind = 3 }", ".kind: found integer `3`, expected a name"),
            ("{ beta = 0.5 }", ".kind: missing; this key is required"),
            (
                "{ kind = \"blest\", beta = 0.5 }",
                ".beta: belongs to kind = \"ecf\"; remove it, or write that kind",
            ),
            (
                "{ kind = \"blest\", step = 0.01 }",
                ".step: belongs to kind = \"blest\" and rule = \"paper\"; remove it",
            ),
            (
                "{ kind = \"blest\", rule = \"papr\" }",
                ".rule: unknown rule \"papr\"; did you mean \"paper\"? (valid: linux, paper)",
            ),
            ("{ kind = \"round_robin\", num_segments = 0 }", ".num_segments: 0: must be 1 or more"),
            (
                "{ kind = \"round_robin\", num_segments = 1.5 }",
                ".num_segments: found floating point `1.5`, expected a whole number",
            ),
            (
                "{ kind = \"round_robin\", cwnd_limited = 1 }",
                ".cwnd_limited: found integer `1`, expected true or false",
            ),
            ("{ kind = \"ecf\", beta = -0.5 }", ".beta: -0.5: must be between 0 and 10"),
            (
                "{ kind = \"ecf\", beta = \"1\" }",
                ".beta: found string \"1\", expected a number such as 1.5",
            ),
        ];
        for (written, problem) in problems {
            let expected = format!("full.toml: connection[0].scheduler{problem}");
            assert_eq!(chosen_scheduler(written), Err(expected));
        }
    }

    #[test]
    fn what_is_wrong_with_a_path_manager_is_explained() {
        let problems = [
            ("{ kind = \"ndiffports\", subflows = 33 }", "subflows: 33: must be between 1 and 32"),
            (
                "{ kind = \"backup\", subflows = 2 }",
                "subflows: belongs to kind = \"ndiffports\"; remove it, or write that kind",
            ),
            (
                "{ kind = \"backup\", regular = \"lte\" }",
                "regular: unknown path of the connection \"lte\" (valid: 3g, wifi)",
            ),
            ("{ kind = \"drepas\", period = \"0s\" }", "period: \"0s\": must be longer than zero"),
            (
                "{ kind = \"drepas\", period = 2 }",
                "period: \"2\" has no unit; write a duration such as \"20ms\"",
            ),
        ];
        for (written, problem) in problems {
            let expected = format!("full.toml: connection[0].path_manager.{problem}");
            assert_eq!(chosen_path_manager(written), Err(expected));
        }
    }
}
