//! Signals: addresses, priorities, failures, and the end of a connection. RFC 8684 §3.3.8 to §3.7.

use anabranch_wire::Flags;
use anabranch_wire::mptcp::AddAddr;

use crate::analyser::{Analyser, SegmentContext};
use crate::connection::Announced;
use crate::keys::{self, Version};
use crate::options::{self, Older};
use crate::rules::Rule;

impl Analyser {
    /// Process the options that belong neither to handshakes nor to data.
    pub(crate) fn signals(&mut self, context: &SegmentContext<'_>) {
        // Options of version 0 may have forms that version 1 lacks.
        if self.version(context) != Some(Version::V1) {
            self.older_signals(context);
        }
        let Some(control) = context.options.control.as_deref() else { return };
        if let Some(option) = control.add_addr {
            match option.truncated_hmac {
                Some(hmac) => self.announcement(context, option, hmac),
                None => self.echo(context, option),
            }
        }
        if let Some(option) = control.remove_addr {
            if let Some((connection, host)) = self.home(context) {
                for id in option.address_ids() {
                    if let Some(announced) = connection.announced[host].get_mut(id) {
                        announced.is_settled = true;
                    }
                }
            }
            let ids: Vec<_> = option.address_ids().iter().map(u8::to_string).collect();
            self.event(context, "remove_addr", format!("addresses {}", ids.join(", ")));
        }
        if let Some(option) = control.prio {
            let text = if option.backup { "backup" } else { "regular" };
            self.event(context, "mp_prio", text.to_owned());
        }
        if let Some(option) = control.fail {
            self.event(context, "mp_fail", format!("from DSN {}", option.data_seq.0));
        }
        if let Some(option) = control.fastclose {
            self.fastclose(context, option.receiver_key);
        }
    }

    /// Process ADD_ADDR and MP_PRIO in forms that only version 0 has. RFC 6824 §3.3.8 and §3.4.1.
    fn older_signals(&mut self, context: &SegmentContext<'_>) {
        for signal in options::older(context.sighting.segment.options) {
            match signal {
                Older::AddAddr { address_id, address, port } => {
                    let port = port.map_or_else(String::new, |port| format!(", port {port}"));
                    self.event(
                        context,
                        "add_addr",
                        format!("address {address_id}: {address}{port}"),
                    );
                }
                Older::Prio { backup, address_id } => {
                    let text = if backup { "backup" } else { "regular" };
                    self.event(context, "mp_prio", format!("{text}, address {address_id}"));
                }
            }
        }
    }

    fn announcement(&mut self, context: &SegmentContext<'_>, option: AddAddr, hmac: u64) {
        let AddAddr { address_id, address, port, .. } = option;
        let Some((connection, host)) = self.home(context) else { return };
        let keys = connection.keys_of(host);
        let known = connection.announced[host].get(&address_id);
        let again = known.is_some_and(|known| known.address == address && known.port == port);
        let announced = connection.announced[host].entry(address_id).or_insert(Announced {
            address,
            port,
            copies: 0,
            first: context.at,
            last: context.at.time,
            subflow: context.subflow as u32,
            is_settled: false,
        });
        if !again {
            (announced.address, announced.port) = (address, port);
            (announced.copies, announced.is_settled) = (0, false);
        }
        announced.copies += 1;
        announced.last = context.at.time;
        // RFC 8684 §3.4.1: over identifier, address, and port (0 if the option has none).
        let expected = |keys| keys::address_hmac(keys, address_id, address, port.unwrap_or(0));
        match keys.map(expected) {
            Some(expected) if expected != hmac => {
                let text = format!("the HMAC of address {address_id}, {address}, is wrong");
                self.violation(context, Rule::AddAddrHmac, text);
            }
            Some(_) => connection.hmacs_right += 1,
            None => {}
        }
        let port = port.map_or_else(String::new, |port| format!(", port {port}"));
        let name = if again { "add_addr_again" } else { "add_addr" };
        self.event(context, name, format!("address {address_id}: {address}{port}"));
    }

    fn echo(&mut self, context: &SegmentContext<'_>, option: AddAddr) {
        let AddAddr { address_id, address, .. } = option;
        let Some((connection, host)) = self.home(context) else { return };
        let settled = match connection.announced[1 - host].get_mut(&address_id) {
            Some(announced) if announced.address == address => {
                announced.is_settled = true;
                true
            }
            _ => false,
        };
        if !settled {
            let text = format!("echo of address {address_id}, {address}, which was not announced");
            self.violation(context, Rule::EchoUnasked, text);
        }
        self.event(context, "add_addr_echo", format!("address {address_id}: {address}"));
    }

    fn fastclose(&mut self, context: &SegmentContext<'_>, key: u64) {
        let Some((connection, host)) = self.home(context) else { return };
        let first = !std::mem::replace(&mut connection.fastclosed, true);
        // RFC 8684 §3.5: the key of the host that receives the option.
        let expected = connection.keys[1 - host];
        if expected.is_some_and(|expected| expected != key) {
            let text = "MP_FASTCLOSE does not carry its receiver's key".into();
            self.violation(context, Rule::FastcloseKey, text);
        }
        if first {
            let form = if context.flags.contains(Flags::RST) { "with RST" } else { "with ACK" };
            self.event(context, "mp_fastclose", form.to_owned());
        }
    }
}
