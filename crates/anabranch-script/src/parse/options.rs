//! TCP options: `<mss 1460, sackOK, dss dack8=1 dsn8=1 ssn=1 dll=100 nocs>`.

use super::words::{keyword, numbered, relative};
use crate::cursor::{Cursor, Parsed, unknown};
use crate::options::{AddressName, DataNumber, MappingSpec, OptionList, OptionSpec, Value, Width};

const NAMES: &[&str] = &[
    "nop",
    "eol",
    "mss",
    "sackOK",
    "wscale",
    "TS",
    "sack",
    "mpcapable",
    "mp_capable",
    "mp_join_syn",
    "mp_join_syn_ack",
    "mp_join_ack",
    "dss",
    "add_address",
    "add_addr",
    "remove_address",
    "remove_addr",
    "mp_prio",
    "mp_fail",
    "mp_fastclose",
    "mp_reset",
    "mp_tcprst",
    "raw",
];

/// A list of options after its `<`.
pub(super) fn list(cursor: &mut Cursor<'_>) -> Parsed<OptionList> {
    let mut list = OptionList::default();
    loop {
        if cursor.take("...")? {
            list.open = true;
        } else {
            list.items.push(option(cursor)?);
        }
        if cursor.take(">")? {
            return Ok(list);
        }
        if list.open {
            return Err(cursor.error("\"...\" ends the list of options; close it with >"));
        }
        if !cursor.take(",")? {
            let found = cursor.found();
            return Err(cursor.error(format!("found {found}; an option ends with , or >")));
        }
    }
}

fn option(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.skip()?;
    let at = cursor.clone();
    Ok(match cursor.word()? {
        "nop" | "eol" => OptionSpec::Nop,
        "mss" => OptionSpec::Mss(number(cursor, "mss", 65_535)?),
        "sackOK" => OptionSpec::SackOk,
        "wscale" => OptionSpec::WindowScale(number(cursor, "wscale", 255)?),
        "TS" => timestamps(cursor)?,
        "sack" => sack(cursor)?,
        "mpcapable" | "mp_capable" => capable(cursor)?,
        "mp_join_syn" => join_syn(cursor)?,
        "mp_join_syn_ack" => join_syn_ack(cursor)?,
        "mp_join_ack" => OptionSpec::JoinAck { hmac: named(cursor, "sender_hmac", Value::Auto)? },
        "dss" => dss(cursor)?,
        "add_address" | "add_addr" => add_address(cursor)?,
        "remove_address" | "remove_addr" => remove_address(cursor)?,
        "mp_prio" => OptionSpec::Prio { backup: flag(cursor, "backup")?.unwrap_or(false) },
        "mp_fail" => fail(cursor)?,
        "mp_fastclose" => fastclose(cursor)?,
        "mp_reset" | "mp_tcprst" => reset(cursor)?,
        "raw" => raw(cursor)?,
        name => return Err(at.error(unknown("option", name, NAMES))),
    })
}

/// A number or `*`.
fn number(cursor: &mut Cursor<'_>, what: &str, most: u64) -> Parsed<Value> {
    if cursor.take("*")? {
        return Ok(Value::Any);
    }
    Ok(Value::Number(cursor.number(what, most)?))
}

/// A number, `*`, `auto`, `bad`, `sha256_32(key)` or a name.
fn value(cursor: &mut Cursor<'_>, what: &str) -> Parsed<Value> {
    cursor.skip()?;
    if !cursor.peek().is_some_and(|c| c.is_alphabetic() || c == '_') {
        return number(cursor, what, u64::MAX);
    }
    Ok(match cursor.word()? {
        "auto" => Value::Auto,
        "bad" => Value::Bad,
        "sha256_32" => {
            cursor.expect("(", "a token")?;
            let key = cursor.word()?.to_owned();
            cursor.expect(")", "a token")?;
            Value::TokenOf(key)
        }
        name => Value::Name(name.to_owned()),
    })
}

/// `name=value`, if the text continues with it.
fn given(cursor: &mut Cursor<'_>, name: &str) -> Parsed<Option<Value>> {
    if !keyword(cursor, name)? {
        return Ok(None);
    }
    cursor.expect("=", name)?;
    value(cursor, name).map(Some)
}

fn named(cursor: &mut Cursor<'_>, name: &str, default: Value) -> Parsed<Value> {
    Ok(given(cursor, name)?.unwrap_or(default))
}

/// `name=0` or `name=1`, if the text continues with it.
fn flag(cursor: &mut Cursor<'_>, name: &str) -> Parsed<Option<bool>> {
    if !keyword(cursor, name)? {
        return Ok(None);
    }
    cursor.expect("=", name)?;
    Ok(Some(cursor.number(name, 1)? == 1))
}

fn timestamps(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.expect("val", "TS")?;
    let stamp = number(cursor, "val", u64::from(u32::MAX))?;
    cursor.expect("ecr", "TS")?;
    let auto = keyword(cursor, "auto")?;
    let echo = if auto { Value::Auto } else { number(cursor, "ecr", u64::from(u32::MAX))? };
    Ok(OptionSpec::Timestamps { value: stamp, echo })
}

fn sack(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    let mut blocks = Vec::new();
    cursor.skip()?;
    while cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        let start = relative(cursor, "the start of a block")?;
        cursor.expect(":", "a SACK block")?;
        blocks.push((start, relative(cursor, "the end of a block")?));
        cursor.skip()?;
    }
    if blocks.is_empty() || blocks.len() > 4 {
        return Err(cursor.error("sack needs one to four blocks: sack 1001:2001 3001:4001"));
    }
    Ok(OptionSpec::Sack(blocks))
}

fn capable(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.skip()?;
    let at = cursor.clone();
    let version = cursor.word()?.strip_prefix('v').and_then(|digits| digits.parse::<u8>().ok());
    let Some(version) = version.filter(|version| *version < 16) else {
        return Err(at.error("mpcapable needs a version: v1"));
    };
    let flags = capable_flags(cursor)?;
    let keys = if keyword(cursor, "key")? { keys(cursor)? } else { Vec::new() };
    let _ = keyword(cursor, "nokey")?;
    let mut data_len = None;
    if keyword(cursor, "mpcdatalen")? {
        data_len = Some(cursor.number("mpcdatalen", 65_535)? as u16);
    }
    let checksum = checksum(cursor)?;
    if keys.len() > 2 || data_len.is_some() && keys.len() != 2 {
        return Err(at.error("mpcapable has at most two keys; with mpcdatalen it needs two"));
    }
    Ok(OptionSpec::Capable { version, flags, keys, data_len, checksum })
}

/// `flags[flag_a|flag_h]`. The letters name the bits, starting at the highest.
fn capable_flags(cursor: &mut Cursor<'_>) -> Parsed<u8> {
    if !keyword(cursor, "flags")? {
        return Ok(0x01);
    }
    cursor.expect("[", "flags")?;
    let mut flags = 0;
    while !cursor.take("]")? {
        cursor.skip()?;
        let at = cursor.clone();
        let letter = cursor.word()?.strip_prefix("flag_").and_then(|rest| rest.chars().next());
        let bit = letter.filter(|letter| ('a'..='h').contains(letter));
        let bit =
            bit.ok_or_else(|| at.error("flags are flag_a to flag_h: flags[flag_a|flag_h]"))?;
        flags |= 0x80 >> (bit as u8 - b'a');
        let _ = cursor.take("|")? || cursor.take(",")?;
    }
    Ok(flags)
}

/// `key[ckey=2, skey]`, after `key`.
fn keys(cursor: &mut Cursor<'_>) -> Parsed<Vec<Value>> {
    cursor.expect("[", "key")?;
    let mut keys = Vec::new();
    while !cursor.take("]")? {
        keys.push(key(cursor)?);
        let _ = cursor.take(",")?;
    }
    Ok(keys)
}

fn key(cursor: &mut Cursor<'_>) -> Parsed<Value> {
    let key = value(cursor, "a key")?;
    let Value::Name(name) = &key else { return Ok(key) };
    if cursor.take("=")? {
        return Ok(Value::Define(name.clone(), cursor.number("a key", u64::MAX)?));
    }
    Ok(key)
}

/// `nocs`, `cksum`, `cksum=bad`, `cksum=0x1234`, or nothing.
fn checksum(cursor: &mut Cursor<'_>) -> Parsed<Option<Value>> {
    if !keyword(cursor, "cksum")? {
        let _ = keyword(cursor, "nocs")?;
        return Ok(None);
    }
    if cursor.take("=")? { value(cursor, "cksum").map(Some) } else { Ok(Some(Value::Auto)) }
}

fn join_syn(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    Ok(OptionSpec::JoinSyn {
        backup: flag(cursor, "backup")?.unwrap_or(false),
        address_id: named(cursor, "address_id", Value::Auto)?,
        token: named(cursor, "token", Value::Auto)?,
        nonce: named(cursor, "nonce", Value::Auto)?,
    })
}

fn join_syn_ack(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    Ok(OptionSpec::JoinSynAck {
        backup: flag(cursor, "backup")?.unwrap_or(false),
        address_id: named(cursor, "address_id", Value::Auto)?,
        hmac: named(cursor, "sender_hmac", Value::Auto)?,
        nonce: named(cursor, "nonce", Value::Auto)?,
    })
}

/// A number whose name includes its size: `dack`, `dack4` or `dack8`.
fn data_number(cursor: &mut Cursor<'_>, name: &str) -> Parsed<Option<DataNumber>> {
    let widths = [("", Width::Either), ("4", Width::Four), ("8", Width::Eight)];
    for (digit, width) in widths {
        if let Some(value) = given(cursor, &format!("{name}{digit}"))? {
            return Ok(Some(DataNumber { width, value }));
        }
    }
    Ok(None)
}

fn dss(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.skip()?;
    let at = cursor.clone();
    let data_ack = data_number(cursor, "dack")?;
    let data_seq = data_number(cursor, "dsn")?;
    let (subflow_seq, len) = (given(cursor, "ssn")?, given(cursor, "dll")?);
    let checksum = checksum(cursor)?;
    let fin = keyword(cursor, "fin")? || keyword(cursor, "FIN")?;
    let mapping = match (data_seq, subflow_seq, len) {
        (Some(data_seq), Some(subflow_seq), Some(len)) => {
            Some(MappingSpec { data_seq, subflow_seq, len, checksum })
        }
        (None, None, None) => None,
        _ => return Err(at.error("a mapping needs dsn (or dsn4, dsn8), ssn and dll")),
    };
    Ok(OptionSpec::Dss { data_ack, mapping, fin })
}

fn add_address(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    let address_id = named(cursor, "address_id", Value::Auto)?;
    cursor.expect("addr", "add_address")?;
    cursor.expect("[", "addr")?;
    let at = cursor.clone();
    let word = cursor.word()?;
    let address = numbered(word, "host")
        .map(AddressName::Host)
        .or_else(|| numbered(word, "peer").map(AddressName::Peer))
        .ok_or_else(|| at.error("addr[...] needs an address: host0 to host3, peer0 to peer3"))?;
    cursor.expect("]", "addr")?;
    let mut port = None;
    if keyword(cursor, "port")? {
        cursor.expect("=", "port")?;
        port = Some(cursor.number("a port", 65_535)? as u16);
    }
    let echo = keyword(cursor, "addr_echo")?;
    let hmac = if echo { None } else { Some(named(cursor, "hmac", Value::Auto)?) };
    Ok(OptionSpec::AddAddress { address_id, address, port, hmac })
}

/// `remove_address address_id=[1, 2]`.
fn remove_address(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.expect("address_id", "remove_address")?;
    cursor.expect("=", "address_id")?;
    let mut ids = Vec::new();
    if cursor.take("[")? {
        while !cursor.take("]")? {
            ids.push(cursor.number("an identifier", 255)? as u8);
            let _ = cursor.take(",")?;
        }
    } else {
        ids.push(cursor.number("an identifier", 255)? as u8);
    }
    if ids.is_empty() || ids.len() > 37 {
        return Err(cursor.error("remove_address needs 1 to 37 identifiers"));
    }
    Ok(OptionSpec::RemoveAddress(ids))
}

fn fail(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    let number = data_number(cursor, "dsn")?;
    let number = number.ok_or_else(|| cursor.error("mp_fail needs a number: mp_fail dsn8=1"))?;
    Ok(OptionSpec::Fail { data_seq: number.value })
}

/// `mp_fastclose`, `mp_fastclose key[skey]`, `mp_fastclose key=bad`.
fn fastclose(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    if !keyword(cursor, "key")? {
        return Ok(OptionSpec::Fastclose { key: Value::Auto });
    }
    let key = if cursor.take("=")? {
        value(cursor, "a key")?
    } else {
        keys(cursor)?.pop().ok_or_else(|| cursor.error("mp_fastclose needs a key: key[skey]"))?
    };
    Ok(OptionSpec::Fastclose { key })
}

/// `mp_reset 1`, `mp_reset reason=1 transient=1`.
fn reset(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    let _ = keyword(cursor, "reason")? && cursor.take("=")?;
    let reason = number(cursor, "the reason", 255)?;
    Ok(OptionSpec::Reset { reason, transient: flag(cursor, "transient")? })
}

fn raw(cursor: &mut Cursor<'_>) -> Parsed<OptionSpec> {
    cursor.expect("[", "raw")?;
    let mut bytes = Vec::new();
    while !cursor.take("]")? {
        let at = cursor.clone();
        let digits = cursor.take_while(|c| c.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2);
        bytes.push(byte.ok_or_else(|| at.error("raw needs bytes in hexadecimal: raw[1e 03 ff]"))?);
    }
    Ok(OptionSpec::Raw(bytes))
}
