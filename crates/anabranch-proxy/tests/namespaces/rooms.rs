//! Namespaces, and programs in them. Everything ends with the test.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Seconds after which everything ends, whatever happens.
const MOST_SECONDS: &str = "300";

/// A network namespace, which a sleeping process keeps.
#[derive(Debug)]
pub(crate) struct Room {
    keeper: Child,
}

impl Room {
    pub(crate) fn new() -> io::Result<Self> {
        let mut keeper = Command::new("unshare");
        keeper.args(["--net", "sleep", MOST_SECONDS]).stdin(Stdio::null());
        let room = Room { keeper: keeper.spawn()? };
        let own = std::fs::read_link("/proc/self/ns/net")?;
        for _ in 0..100 {
            let its = std::fs::read_link(format!("/proc/{}/ns/net", room.keeper.id()))?;
            if its != own {
                // Addresses of IPv6 come late, and look like changes.
                room.run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1")?;
                room.run("ip link set lo up")?;
                return Ok(room);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::Error::other("unshare does not leave the namespace"))
    }

    /// The process that keeps the namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.keeper.id()
    }

    /// A program in the namespace, with a time limit.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args([format!("--net=/proc/{}/ns/net", self.keeper.id())]);
        command.arg("timeout").arg(MOST_SECONDS).arg(program);
        command
    }

    /// Run a command to its end.
    pub(crate) fn run(&self, command: &str) -> io::Result<String> {
        let mut words = command.split(' ');
        let program = Path::new(words.next().unwrap_or_default());
        output(self.command(program).args(words))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The standard output of a command that succeeds.
pub(crate) fn output(command: &mut Command) -> io::Result<String> {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr).trim().to_owned();
    Err(io::Error::other(format!("{command:?}: {status}: {said}")))
}

/// A program in the background, which ends with this value.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    /// Lines of its standard error.
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    /// Start a program whose standard error is of interest.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        // The whole group ends together.
        let mut child =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0).spawn()?;
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let (tell, lines) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if std::env::var_os("SHOW").is_some() {
                    println!("    {line}");
                }
                let _ = tell.send(line);
            }
        });
        Ok(Running { child, lines })
    }

    /// Wait until the program writes a line that contains `text`.
    pub(crate) fn wait_for(&self, text: &str) -> io::Result<()> {
        let mut all = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(10)) {
            if line.contains(text) {
                return Ok(());
            }
            all.push(line);
        }
        Err(io::Error::other(format!("no line with {text:?}, but {all:?}")))
    }

    /// The lines that nobody has waited for. The program has ended.
    pub(crate) fn rest(&self) -> String {
        self.lines.iter().collect::<Vec<_>>().join("\n")
    }

    /// The process of the program, which `timeout` has started.
    pub(crate) fn program(&self) -> io::Result<String> {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        Ok(std::fs::read_to_string(children)?.trim().to_owned())
    }

    /// Send a signal to the program.
    pub(crate) fn signal(&self, signal: &str) -> io::Result<()> {
        output(Command::new("kill").args([signal, &self.program()?])).map(|_| ())
    }

    /// Send a signal to the program, and wait until it and `timeout` have ended.
    pub(crate) fn end(&mut self, signal: &str) -> io::Result<()> {
        self.signal(signal)?;
        self.child.wait().map(|_| ())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let group = format!("-{}", self.child.id());
            let _ = output(Command::new("kill").args(["-KILL", "--", &group]));
            let _ = self.child.wait();
        }
    }
}

/// A folder for sockets and files.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("anabranch-proxy-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Folder(folder))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
