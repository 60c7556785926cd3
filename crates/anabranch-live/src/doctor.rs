//! Checks whether this host supports live runs, with remedies.

use std::io;
use std::process::{Command, Stdio};

use rustix::io::Errno;

use crate::namespace::{self, Namespace};
use crate::sys::{self, PacketSocket, Tun};

/// A capability of the host that live runs, or tests of live runs, need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Name of the capability.
    pub name: &'static str,
    /// Purpose of the capability.
    pub purpose: &'static str,
    /// Reason why the capability is missing; `None` if it works.
    pub problem: Option<String>,
    /// Instructions for getting the capability.
    pub remedy: &'static str,
    /// Whether live runs are impossible without it.
    pub required: bool,
}

/// Check all capabilities. Call this inside the namespaces of [`enter`](crate::enter).
pub fn probe() -> Vec<Capability> {
    let required = |name, purpose, remedy, tried: io::Result<()>| {
        let problem = tried.err().map(|error| error.to_string());
        Capability { name, purpose, problem, remedy, required: true }
    };
    let useful = |name, purpose, remedy, tried| Capability {
        required: false,
        ..required(name, purpose, remedy, tried)
    };
    vec![
        required("namespaces", "a separate network for every host", NAMESPACES, namespaces()),
        required("iproute2", "interfaces, routes, endpoints", "apt install iproute2", ip(&["-V"])),
        required("veth and AF_PACKET", "packets between kernel and emulator", KERNEL, packets()),
        required("Multipath TCP", "the kernel as a peer", MPTCP, mptcp()),
        useful("ip mptcp", "further subflows of kernel hosts", "iproute2 5.8 or later", ip_mptcp()),
        useful("congestion control cubic", "kernel hosts", KERNEL, cubic()),
        useful("preference", "an emulator in time on a busy machine", ROOT, preference()),
        useful("tshark", "a second decoder of captures", "apt install tshark", tool("tshark")),
        useful("TUN", "anabranch shell; make bench-tun", "permissions of /dev/net/tun", tun()),
        useful("nftables", "make interop: options that this kernel strips", NFTABLES, nftables()),
    ]
}

const NAMESPACES: &str = "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
     kernel.apparmor_restrict_unprivileged_userns=0), or run as root";
const KERNEL: &str = "a kernel that has it (CONFIG_VETH, CONFIG_PACKET, CONFIG_TCP_CONG_CUBIC)";
const MPTCP: &str = "Linux 6.5 or later with CONFIG_MPTCP";
const NFTABLES: &str = "apt install nftables (1.0.2 or later); a kernel with CONFIG_NFT_EXTHDR";
const ROOT: &str = "run as root";

fn namespaces() -> io::Result<()> {
    Namespace::new().map(|_| ())
}

fn packets() -> io::Result<()> {
    let namespace = Namespace::new()?;
    namespace.within(|| {
        namespace::ip(&["link add near type veth peer name far".to_owned()])?;
        namespace::ip(&["link set near up".to_owned(), "link set far up".to_owned()])?;
        sys::disable_offloads("near")?;
        PacketSocket::open("far", [2, 0, 0, 0, 0, 1]).map(|_| ())
    })
}

fn mptcp() -> io::Result<()> {
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled")?;
    if enabled.trim() != "1" {
        return Err(io::Error::other("net.mptcp.enabled is 0"));
    }
    let socket = sys::stream_socket(true, sys::MPTCP)?;
    // An unconnected socket has no information. A kernel that does not know the option returns
    // another error.
    match sys::mptcp_info(&socket) {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOPROTOOPT) => Err(error),
        _ => Ok(()),
    }
}

fn ip_mptcp() -> io::Result<()> {
    Namespace::new()?.within(|| namespace::ip(&["mptcp limits set subflow 8".to_owned()]))
}

fn cubic() -> io::Result<()> {
    let socket = sys::stream_socket(true, sys::TCP)?;
    sys::set_congestion_control(&socket, "cubic").map(|_| ())
}

fn nftables() -> io::Result<()> {
    let rule = "nft 'add table inet probe; \
                add chain inet probe out { type filter hook output priority 0; }; \
                add rule inet probe out reset tcp option mptcp'";
    Namespace::new()?.within(|| namespace::shell(rule))
}

fn preference() -> io::Result<()> {
    if sys::is_preferred() {
        Ok(())
    } else {
        Err(io::Error::other("no privilege for real-time priority"))
    }
}

fn tun() -> io::Result<()> {
    Namespace::new()?.within(|| Tun::open("probe", true).map(|_| ()))
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    start("ip", arguments)
}

fn tool(name: &str) -> io::Result<()> {
    start(name, &["--version"])
}

fn start(name: &str, arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new(name);
    command.args(arguments).env("PATH", namespace::search_path());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{name}: {status}"))) }
}
