//! Segments: `[ect0] host0-peer1 P. 1:101(100) ack 1 win 257 <nop>`.

use anabranch_wire::{CE, ECT_0, Flags};

use super::options;
use super::words::{keyword, numbered, relative};
use crate::cursor::{Cursor, Parsed};
use crate::options::OptionList;
use crate::script::{PathName, SegmentSpec};

pub(super) fn segment(cursor: &mut Cursor<'_>, inbound: bool) -> Parsed<SegmentSpec> {
    let (mut ecn, mut corrupt) = (None, false);
    while cursor.take("[")? {
        mark(cursor, inbound, &mut ecn, &mut corrupt)?;
        cursor.expect("]", "a mark")?;
    }
    let path = path(cursor)?;
    let flags = flags(cursor)?;
    let (seq, len) = sequence(cursor)?;
    let ack = field(cursor, "ack")?;
    let window = if keyword(cursor, "win")? { Some(short(cursor, "the window")?) } else { None };
    let urgent = if keyword(cursor, "urg")? { Some(short(cursor, "the pointer")?) } else { None };
    cursor.skip()?;
    let at = cursor.clone();
    let options = if cursor.take("<")? { options::list(cursor)? } else { OptionList::default() };
    if inbound && options.open {
        return Err(at.error(
            "\"...\" is only for segments of the stack; write the options that the peer sends",
        ));
    }
    if ack.is_some() != flags.contains(Flags::ACK) {
        return Err(at.error("the flag \".\" and \"ack N\" need each other; write both or neither"));
    }
    Ok(SegmentSpec { path, ecn, corrupt, flags, seq, len, ack, window, urgent, options })
}

/// `[ect0]`, `[ce]`, `[noecn]`, `[badsum]`.
fn mark(
    cursor: &mut Cursor<'_>,
    inbound: bool,
    ecn: &mut Option<u8>,
    corrupt: &mut bool,
) -> Parsed<()> {
    cursor.skip()?;
    let at = cursor.clone();
    match cursor.word()? {
        "ect0" => *ecn = Some(ECT_0),
        "ect1" => *ecn = Some(1),
        "ce" => *ecn = Some(CE),
        "noecn" => *ecn = Some(0),
        "badsum" if inbound => *corrupt = true,
        name => {
            let names = ["ect0", "ect1", "ce", "noecn", "badsum"];
            return Err(at.error(crate::cursor::unknown("mark", name, &names)));
        }
    }
    Ok(())
}

/// `host0-peer1`, with ports `host0:9000-peer1:9001`, for the second subflow `host0-peer1/2`.
fn path(cursor: &mut Cursor<'_>) -> Parsed<PathName> {
    cursor.skip()?;
    if !cursor.rest().starts_with("host") {
        return Ok(PathName::FIRST);
    }
    let at = cursor.clone();
    let wrong = || at.error("a path has the form host0-peer1 (host0 to host3, peer0 to peer3)");
    let host = numbered(cursor.word()?, "host").ok_or_else(wrong)?;
    let host_port = port(cursor)?;
    if !cursor.take_exactly("-") {
        return Err(wrong());
    }
    let peer = numbered(cursor.word()?, "peer").ok_or_else(wrong)?;
    let peer_port = port(cursor)?;
    let number = if cursor.take_exactly("/") { cursor.number("a subflow", 9)? as u8 } else { 1 };
    Ok(PathName { host, host_port, peer, peer_port, number })
}

fn port(cursor: &mut Cursor<'_>) -> Parsed<Option<u16>> {
    if cursor.take_exactly(":") { Ok(Some(short(cursor, "a port")?)) } else { Ok(None) }
}

fn flags(cursor: &mut Cursor<'_>) -> Parsed<Flags> {
    cursor.skip()?;
    let at = cursor.clone();
    let letters = cursor.take_while(|c| "SFRP.EWU-".contains(c));
    if letters.is_empty() {
        let found = at.found();
        return Err(
            at.error(format!("found {found}; flags are letters of SFRP.EWU, or - for none"))
        );
    }
    let flag = |letter| match letter {
        'S' => Flags::SYN,
        'F' => Flags::FIN,
        'R' => Flags::RST,
        'P' => Flags::PSH,
        '.' => Flags::ACK,
        'E' => Flags::ECE,
        'W' => Flags::CWR,
        'U' => Flags::URG,
        _ => Flags::default(),
    };
    Ok(letters.chars().map(flag).fold(Flags::default(), |all, flag| all | flag))
}

/// `1:101(100)`: sequence number, the sequence number after the payload, and bytes of payload.
fn sequence(cursor: &mut Cursor<'_>) -> Parsed<(u32, u32)> {
    cursor.skip()?;
    let at = cursor.clone();
    let seq = relative(cursor, "the sequence number")?;
    cursor.expect(":", "a sequence range")?;
    let end = relative(cursor, "the end of the payload")?;
    cursor.expect("(", "a sequence range")?;
    let len = cursor.number("the length", 65_535)? as u32;
    cursor.expect(")", "a sequence range")?;
    if seq.wrapping_add(len) != end {
        let right = seq.wrapping_add(len);
        return Err(at.error(format!(
            "{seq}:{end}({len}) is inconsistent; did you mean {seq}:{right}({len})?"
        )));
    }
    Ok((seq, len))
}

fn field(cursor: &mut Cursor<'_>, name: &str) -> Parsed<Option<u32>> {
    if keyword(cursor, name)? {
        relative(cursor, "the acknowledgement").map(Some)
    } else {
        Ok(None)
    }
}

fn short(cursor: &mut Cursor<'_>, what: &str) -> Parsed<u16> {
    Ok(cursor.number(what, 65_535)? as u16)
}
