//! The remedies of a connection: a table of the remedies that are on.

use std::borrow::Cow;

use anabranch_config::written::Problem;
use anabranch_config::{Selection, WrittenSelection, schema, with_parameters};
use anabranch_proto::remedy::RemedyConfig;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

/// Serialisation of remedies for `#[serde(with = "Remedies")]`. In a file, each key is the name of a
/// remedy. Its value is true or false, the value of the first parameter, or a table of parameters.
pub(super) struct Remedies;

impl Remedies {
    pub(super) fn serialize<S: Serializer>(
        remedies: &[RemedyConfig],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = remedies.iter().map(|remedy| {
            let parameters = remedy.parameters().into_iter();
            let parameters: Table =
                parameters.map(|(name, value)| (name.to_owned(), value)).collect();
            let value = if parameters.is_empty() {
                toml::Value::Boolean(true)
            } else {
                toml::Value::Table(parameters)
            };
            (remedy.name().to_owned(), value)
        });
        written.collect::<Table>().serialize(serializer)
    }

    /// The remedies that a table turns on, in the order in which the engine asks them.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<RemedyConfig>, D::Error> {
        let mut all = Vec::new();
        for (name, value) in Table::deserialize(deserializer)? {
            let remedy = remedy(&name, value).map_err(|problem| problem.below(&name).raise())?;
            all.extend(remedy);
        }
        let place = |name| RemedyConfig::ALL.iter().position(|remedy| remedy.name == name);
        all.sort_by_key(|remedy: &RemedyConfig| place(remedy.name()));
        Ok(all)
    }
}

/// The remedy called `name`, unless it is off.
fn remedy(name: &str, value: toml::Value) -> Result<Option<RemedyConfig>, Problem> {
    let reader = RemedyConfig::READERS.iter().find(|reader| reader.description.name == name);
    let first = reader.and_then(|reader| (reader.parameters)().first());
    let written = match value {
        toml::Value::Boolean(false) => return Ok(None),
        toml::Value::Boolean(true) => Table::new(),
        toml::Value::Table(table) => table,
        value => match first {
            Some(first) => Table::from_iter([(first.name.to_owned(), value)]),
            None if reader.is_some() => {
                let problem =
                    format!("{value}: this remedy has no parameters; write true or false");
                return Err(Problem::new("", problem));
            }
            // It is unknown.
            None => Table::new(),
        },
    };
    with_parameters(name, written, &[]).map(Some)
}

impl JsonSchema for Remedies {
    fn schema_name() -> Cow<'static, str> {
        "Remedies".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for (index, remedy) in RemedyConfig::ALL.iter().enumerate() {
            let parameters = schema::parameters_of::<RemedyConfig>(index, generator);
            let mut forms = vec![serde_json::json!({ "type": "boolean" })];
            if let Some((_, first)) = parameters.first() {
                forms.push(first.clone());
                let each = parameters.into_iter().map(|(name, schema)| (name.to_owned(), schema));
                forms.push(serde_json::json!({
                    "type": "object",
                    "properties": each.collect::<serde_json::Map<_, _>>(),
                    "additionalProperties": false,
                }));
            }
            let schema = serde_json::json!({ "description": remedy.summary, "anyOf": forms });
            properties.insert(remedy.name.to_owned(), schema);
        }
        json_schema!({
            "type": "object", "properties": properties, "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::scenario::tests::{SMALLEST, read};
    use anabranch_proto::remedy::{
        CwndCapConfig, MptBmConfig, PenalisationConfig, PenalisationFormName,
    };
    use anabranch_wire::Duration;

    fn remedies(written: &str) -> Result<Vec<RemedyConfig>, String> {
        let keys = format!("[[connection]]\nremedies = {{ {written} }}");
        let text = SMALLEST.replacen("[[connection]]", &keys, 1);
        let scenario = Scenario::from_toml(&text, "small.toml").map_err(|e| e.to_string())?;
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
        Ok(scenario.connections[0].remedies.clone())
    }

    fn names(remedies: &[RemedyConfig]) -> Vec<&str> {
        remedies.iter().map(Selection::name).collect()
    }

    #[test]
    fn they_are_asked_in_one_order_however_they_are_written() {
        let all = remedies(
            "opportunistic_retransmission = true, mpt_bm = {}, cwnd_cap = false, penalisation = true",
        );
        assert_eq!(
            names(&all.unwrap()),
            ["penalisation", "opportunistic_retransmission", "mpt_bm"]
        );
        assert_eq!(remedies("cwnd_cap = false"), Ok(vec![]));
    }

    #[test]
    fn a_value_alone_is_that_of_the_first_parameter() {
        let one = |written: &str| remedies(written).unwrap().remove(0);
        let penalisation = |form| PenalisationConfig { form }.into();
        assert_eq!(one("penalisation = \"nsdi12\""), penalisation(PenalisationFormName::Nsdi12));
        assert_eq!(one("penalisation = true"), penalisation(PenalisationFormName::Conext13));
        assert_eq!(one("cwnd_cap = 3"), CwndCapConfig { cap_factor: 3.0 }.into());
        let by_default = MptBmConfig::default();
        assert_eq!(one("mpt_bm = 3"), MptBmConfig { lambda: 3.0, ..by_default }.into());
        let without = MptBmConfig { theta: Duration::ZERO, ..by_default };
        assert_eq!(one("mpt_bm = { theta = \"0s\" }"), without.into());
    }

    #[test]
    fn what_is_wrong_with_them_is_explained() {
        let problems = [
            (
                "mtp_bm = true",
                "mtp_bm: unknown remedy \"mtp_bm\"; did you mean \"mpt_bm\"? (valid: penalisation, opportunistic_retransmission, buffer_autotuning, cwnd_cap, mpt_bm)",
            ),
            (
                "buffer_autotuning = 3",
                "buffer_autotuning: 3: this remedy has no parameters; write true or false",
            ),
            (
                "penalisation = \"nsdi\"",
                "penalisation.form: unknown form \"nsdi\"; did you mean \"nsdi12\"? (valid: nsdi12, nsdi12_ssthresh, nsdi12_rtt, nsdi12_pause, kernel_0_88, conext13)",
            ),
            ("cwnd_cap = 0", "cwnd_cap.cap_factor: 0: must be between 1 and 1000"),
            ("mpt_bm = { lambda = 0.9 }", "mpt_bm.lambda: 0.9: must be between 1 and 1000"),
            (
                "mpt_bm = { theta = 60 }",
                "mpt_bm.theta: \"60\" has no unit; write a duration such as \"20ms\"",
            ),
        ];
        for (written, problem) in problems {
            let expected = format!("small.toml: connection[0].remedies.{problem}");
            assert_eq!(remedies(written), Err(expected));
        }
    }
}
