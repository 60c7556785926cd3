//! Header options: `--name=value` before the first event.

use anabranch_config::{Selection, named};
use anabranch_proto::platform::{Platform, PlatformConfig};
use anabranch_wire::Duration;

use super::words::numbered;
use crate::cursor::{Cursor, Parsed, one_of, unknown};
use crate::settings::{Congestion, EndpointUse, ScriptSettings};

const NAMES: &[&str] = &[
    "tolerance_usecs",
    "ip_version",
    "platform",
    "mtu",
    "late_fallback",
    "checksum",
    "keep_alive",
    "sack",
    "timestamps",
    "ecn",
    "initial_window",
    "congestion",
    "allow_join",
    "endpoint",
    "peer_isn",
    "skip_live",
    "differs_live",
];

pub(super) fn settings(cursor: &mut Cursor<'_>) -> Parsed<ScriptSettings> {
    let mut settings = ScriptSettings::default();
    loop {
        cursor.skip()?;
        let at = cursor.clone();
        if !cursor.take_exactly("--") {
            return Ok(settings);
        }
        let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !NAMES.contains(&name) {
            return Err(at.error(unknown("header option", name, NAMES)));
        }
        if !cursor.take_exactly("=") {
            return Err(at.error(format!("--{name} needs a value: --{name}=...")));
        }
        let (at, value) = (cursor.clone(), value(cursor)?);
        set(&mut settings, name, &value)
            .map_err(|right| at.error(format!("--{name}: found \"{value}\"; write {right}")))?;
    }
}

/// A value up to white space, or between quotes.
fn value(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let at = cursor.clone();
    if !cursor.take_exactly("\"") {
        return Ok(cursor.take_while(|c| !c.is_whitespace()).to_owned());
    }
    let text = cursor.take_while(|c| c != '"' && c != '\n').to_owned();
    if cursor.take_exactly("\"") {
        Ok(text)
    } else {
        Err(at.error("unterminated quote; close it with \""))
    }
}

/// Set an option. Otherwise return the valid values.
fn set(settings: &mut ScriptSettings, name: &str, value: &str) -> Result<(), String> {
    match name {
        "tolerance_usecs" => {
            settings.tolerance = Duration::from_micros(number(value, 0, 10_000_000)?);
        }
        "ip_version" => settings.ipv6 = choice(value, &[("ipv4", false), ("ipv6", true)])?,
        "platform" => settings.platform = platform(value)?,
        "mtu" => settings.mtu = number(value, 576, 65_535)? as u16,
        "late_fallback" => settings.late_fallback = truth(value)?,
        "checksum" => settings.checksum = truth(value)?,
        "keep_alive" => settings.keep_alive = Some(number(value, 1, 32_767)? as u32),
        "sack" => settings.sack = truth(value)?,
        "timestamps" => settings.timestamps = truth(value)?,
        "ecn" => settings.ecn = truth(value)?,
        "initial_window" => settings.initial_window = number(value, 1, 1_000)? as u32,
        "congestion" => {
            let known = [("reno", Congestion::Reno), ("cubic", Congestion::Cubic)];
            settings.congestion = choice(value, &known)?;
        }
        "allow_join" => settings.allow_join = truth(value)?,
        "endpoint" => settings.endpoints.push(endpoint(value)?),
        "peer_isn" => settings.peer_isn = number(value, 0, u64::from(u32::MAX))? as u32,
        "skip_live" => settings.skip_live = Some(reason(value)?),
        _ => settings.differs_live = Some(reason(value)?),
    }
    Ok(())
}

fn platform(name: &str) -> Result<Platform, String> {
    let names: Vec<_> = PlatformConfig::ALL.iter().map(|platform| platform.name).collect();
    let platform = named::<PlatformConfig>(name).map_err(|_| one_of(&names))?;
    Ok(platform.part().build())
}

fn endpoint(value: &str) -> Result<(u8, EndpointUse), String> {
    let right = "an address and its use: host1,subflow, host1,backup or host1,signal";
    let (address, used) = value.split_once(',').ok_or(right)?;
    let number = numbered(address, "host").filter(|number| *number > 0).ok_or(right)?;
    let uses = [
        ("subflow", EndpointUse::Subflow),
        ("backup", EndpointUse::Backup),
        ("signal", EndpointUse::Signal),
    ];
    Ok((number, choice(used, &uses).map_err(|_| right)?))
}

fn reason(value: &str) -> Result<String, String> {
    if value.is_empty() { Err("the reason, in quotes".to_owned()) } else { Ok(value.to_owned()) }
}

fn truth(value: &str) -> Result<bool, String> {
    choice(value, &[("true", true), ("false", false)])
}

fn choice<T: Copy>(value: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, meaning)| *meaning);
    let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| one_of(&names))
}

fn number(value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("a number from {least} to {most}"))
}
