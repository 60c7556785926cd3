//! The remedies of a connection: a table of the remedies that are on.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::entry_schema::property;
use super::policies::{Remedy, RemedyFactory};
use super::selected::{Catalog, written_parameters};
use crate::written::Problem;

/// Serialisation of remedies for `#[serde(with = "Remedies")]`. In a file, each key is the name of a
/// remedy. Its value is true or false, the value of the first parameter, or a table of parameters.
pub(super) struct Remedies;

impl Remedies {
    pub(super) fn serialize<S: Serializer>(
        remedies: &[Remedy],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = remedies.iter().map(|remedy| {
            let parameters: Table = written_parameters(remedy).collect();
            let value = if parameters.is_empty() {
                toml::Value::Boolean(true)
            } else {
                toml::Value::Table(parameters)
            };
            (remedy.entry.name.to_owned(), value)
        });
        written.collect::<Table>().serialize(serializer)
    }

    /// The remedies that a table turns on, in the order in which the engine asks them.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Remedy>, D::Error> {
        let mut all = Vec::new();
        for (name, value) in Table::deserialize(deserializer)? {
            let remedy = remedy(&name, value).map_err(|problem| problem.below(&name).raise())?;
            all.extend(remedy);
        }
        let place = |remedy: &Remedy| {
            RemedyFactory::ALL.iter().position(|entry| entry.name == remedy.entry.name)
        };
        all.sort_by_key(place);
        Ok(all)
    }
}

/// The remedy called `name`, unless it is off.
fn remedy(name: &str, value: toml::Value) -> Result<Option<Remedy>, Problem> {
    let entry = Remedy::named(name)?;
    let written = match value {
        toml::Value::Boolean(false) => return Ok(None),
        toml::Value::Boolean(true) => Table::new(),
        toml::Value::Table(table) => table,
        value => match entry.parameters.first() {
            Some(first) => Table::from_iter([(first.name.to_owned(), value)]),
            None => {
                let problem =
                    format!("{value}: this remedy has no parameters; write true or false");
                return Err(Problem::new("", problem));
            }
        },
    };
    Remedy::with_parameters(entry, written, &[]).map(Some)
}

impl JsonSchema for Remedies {
    fn schema_name() -> Cow<'static, str> {
        "Remedies".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        for entry in RemedyFactory::ALL {
            let each: serde_json::Map<String, serde_json::Value> = entry
                .parameters
                .iter()
                .map(|p| (p.name.to_owned(), property(entry.name, p, generator).into()))
                .collect();
            let mut forms = vec![serde_json::json!({ "type": "boolean" })];
            if let Some(first) = entry.parameters.first() {
                forms.push(property(entry.name, first, generator).into());
                forms.push(serde_json::json!({
                    "type": "object", "properties": each, "additionalProperties": false,
                }));
            }
            let schema = serde_json::json!({ "description": entry.summary, "anyOf": forms });
            properties.insert(entry.name.to_owned(), schema);
        }
        json_schema!({
            "type": "object", "properties": properties, "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::tests::{SMALLEST, read};
    use crate::scenario::{Remedy, Scenario};
    use anabranch_proto::policy::Value;
    use anabranch_wire::Duration;

    fn remedies(written: &str) -> Result<Vec<Remedy>, String> {
        let keys = format!("[[connection]]\nremedies = {{ {written} }}");
        let text = SMALLEST.replacen("[[connection]]", &keys, 1);
        let scenario = Scenario::from_toml(&text, "small.toml").map_err(|e| e.to_string())?;
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
        Ok(scenario.connections[0].remedies.clone())
    }

    fn names(remedies: &[Remedy]) -> Vec<&str> {
        remedies.iter().map(|remedy| remedy.entry.name).collect()
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
        let value = |written: &str, name| remedies(written).unwrap()[0].values.get(name);
        assert_eq!(value("penalisation = \"nsdi12\"", "form"), Value::Choice("nsdi12"));
        assert_eq!(value("penalisation = true", "form"), Value::Choice("conext13"));
        assert_eq!(value("cwnd_cap = 3", "cap_factor"), Value::Number(3.0));
        assert_eq!(value("mpt_bm = 3", "theta"), Value::Time(Duration::from_millis(50)));
        assert_eq!(value("mpt_bm = { theta = \"0s\" }", "theta"), Value::Time(Duration::ZERO));
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
                "penalisation.form: unknown form \"nsdi\"; did you mean \"nsdi12\"? (valid: nsdi12, nsdi12_ssthresh, nsdi12_rtt, nsdi12_pause, kernel_0_89, conext13)",
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
