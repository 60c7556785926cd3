//! Policies and platforms in scenarios.

use anabranch_config::{Part, PathRef, Selection, WrittenSelection};
use anabranch_net::{Discipline, ShaperConfig, middlebox::MiddleboxConfig};
use anabranch_proto::congestion::CongestionControlConfig;
use anabranch_proto::path_manager::{BackupConfig, DRePaSConfig, PathManagerConfig};
use anabranch_proto::platform::PlatformConfig;
use anabranch_proto::remedy::RemedyConfig;
use anabranch_proto::scheduler::{BlestConfig, BlestRuleName, EcfConfig, SchedulerConfig};
use anabranch_wire::Duration;

use super::tests::{FULL, read};
use super::{Connection, Policy, Scenario};

/// The policy with this name and its defaults.
pub(super) fn default_of<S: WrittenSelection>(name: &str) -> S {
    anabranch_config::named(name).unwrap_or_else(|problem| panic!("{name}: {problem:?}"))
}

pub(super) fn scheduler(name: &str) -> SchedulerConfig {
    default_of(name)
}

pub(super) fn path_manager(name: &str) -> PathManagerConfig {
    default_of(name)
}

/// The backup mode with this regular path.
fn backup(name: &'static str, index: usize) -> PathManagerConfig {
    BackupConfig { regular: PathRef { name: name.into(), index } }.into()
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

fn chosen_scheduler(written: &str) -> Result<SchedulerConfig, String> {
    let scheduler = format!("scheduler = {written}");
    Ok(built_in(with("scheduler = \"min_rtt\"", &scheduler)?.scheduler))
}

fn chosen_path_manager(written: &str) -> Result<PathManagerConfig, String> {
    let manager = format!("path_manager = {written}");
    Ok(built_in(with("path_manager = \"initial_only\"", &manager)?.path_manager))
}

#[test]
fn names_are_unique_and_defaults_are_what_they_may_be() {
    fn check<S: WrittenSelection>() {
        for (index, reader) in S::READERS.iter().enumerate() {
            let part = reader.description;
            assert_eq!(part, S::ALL[index]);
            assert!(S::ALL[..index].iter().all(|other| other.name != part.name));
            assert!(!part.source.is_empty() && part.summary.ends_with('.'), "{}", part.name);
            for parameter in (reader.parameters)() {
                let name = format!("{}.{}", part.name, parameter.name);
                assert!(!parameter.origin.is_empty() && !parameter.meaning.is_empty(), "{name}");
            }
        }
    }
    check::<PlatformConfig>();
    check::<SchedulerConfig>();
    check::<PathManagerConfig>();
    check::<RemedyConfig>();
    check::<CongestionControlConfig>();
    check::<Discipline>();
    check::<ShaperConfig>();
    check::<MiddleboxConfig>();
    // Write each policy with its defaults, and read it back.
    for part in SchedulerConfig::ALL {
        let written = format!("{{ kind = {:?} }}", part.name);
        assert_eq!(chosen_scheduler(&written), Ok(scheduler(part.name)));
    }
    for part in PathManagerConfig::ALL {
        let is_backup = part.name == BackupConfig::NAME;
        let expected = if is_backup { backup("3g", 0) } else { path_manager(part.name) };
        assert_eq!(chosen_path_manager(&format!("{:?}", part.name)), Ok(expected));
    }
}

#[test]
fn a_policy_is_a_name_or_a_table() {
    let paper = BlestConfig { rule: BlestRuleName::Paper, ..BlestConfig::default() };
    let written = "{ kind = \"blest\", rule = \"paper\" }";
    assert_eq!(chosen_scheduler(written), Ok(paper.into()));
    let written = "{ kind = \"blest\", rule = \"paper\", step = 0.005 }";
    assert_eq!(chosen_scheduler(written), Ok(BlestConfig { step: 0.005, ..paper }.into()));
    let ecf = EcfConfig { beta: 1.0, ..EcfConfig::default() };
    assert_eq!(chosen_scheduler("{ kind = \"ecf\", beta = 1 }"), Ok(ecf.into()));
    let drepas = DRePaSConfig { period: Duration::from_secs(2), ..DRePaSConfig::default() };
    assert_eq!(chosen_path_manager("{ kind = \"drepas\", period = \"2s\" }"), Ok(drepas.into()));
    assert_eq!(
        chosen_path_manager("{ kind = \"backup\", regular = \"wifi\" }"),
        Ok(backup("wifi", 1))
    );
}

#[test]
fn what_is_wrong_with_a_scheduler_is_explained() {
    let problems = [
        ("3", ": found integer `3`, expected a name such as \"min_rtt\", or a table with a kind"),
        (
            "{ kind = \"blst\", rule = \"paper\" }",
            ".kind: unknown scheduler \"blst\"; did you mean \"blest\"? (valid: min_rtt, round_robin, redundant, blest, ecf, otias, sttf, daps, linux, \
             mptcp_org, mptcp_org_round_robin)",
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
