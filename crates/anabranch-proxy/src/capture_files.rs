//! Files of a capture: the packets, and their qlog.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Seek};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::options::CommonOptions;
use crate::part_file::PartFile;

/// Permissions of a file that nobody else may read.
const PRIVATE: u32 = 0o600;

/// Open files of a capture. They are created with privileges, because the process that writes
/// packets cannot open files.
#[derive(Debug)]
pub(crate) struct CaptureFiles {
    packets: File,
    qlog: Option<PartFile>,
}

impl CaptureFiles {
    /// Create the files that the options ask for. Without `--pcap`, the packets of `--qlog` are in a
    /// file without a name.
    ///
    /// # Errors
    /// One line that names the option and the file.
    pub(crate) fn create(common: &CommonOptions) -> Result<Option<Self>, String> {
        let packets = match (&common.pcap, &common.qlog) {
            (Some(path), _) => create_private(path).map_err(|error| named("pcap", path, &error))?,
            (None, Some(_)) => {
                let folder = std::env::temp_dir();
                create_nameless(&folder).map_err(|error| named("qlog", &folder, &error))?
            }
            (None, None) => return Ok(None),
        };
        let create =
            |path| PartFile::create(path, PRIVATE).map_err(|error| named("qlog", path, &error));
        let qlog = common.qlog.as_deref().map(create).transpose()?;
        Ok(Some(CaptureFiles { packets, qlog }))
    }

    /// The packets, for the process that writes them.
    pub(crate) fn packets(&self) -> io::Result<Stdio> {
        Ok(self.packets.try_clone()?.into())
    }

    /// Write the qlog file, if there is one: `converter` reads the packets and writes qlog, as this
    /// user and group. It parses what peers have sent. Returns `false` if it has failed, and has said
    /// why.
    ///
    /// # Errors
    /// If it cannot be started, or the file cannot get its name.
    pub(crate) fn convert(self, converter: &[String], owner: (u32, u32)) -> io::Result<bool> {
        let Some(qlog) = self.qlog else { return Ok(true) };
        let mut packets = self.packets;
        packets.rewind()?;
        let mut command = command_of(converter, owner);
        let status = command.stdin(packets).stdout(qlog.file().try_clone()?).status()?;
        if status.success() {
            qlog.complete()?;
        }
        Ok(status.success())
    }
}

/// Check that this user and group can start the converter to qlog: it may be in a folder of root.
///
/// # Errors
/// One line that says what else to do.
pub(crate) fn check_converter(converter: &[String], owner: (u32, u32)) -> Result<(), String> {
    let mut command = command_of(converter, owner);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| {
        format!(
            "qlog: {}: {error}, for the user without privileges; name another one with --user, or \
             write a capture with --pcap FILE and convert it: anabranch analyze FILE --qlog OUT",
            converter[0]
        )
    })?;
    let _ = child.kill();
    let _ = child.wait();
    Ok(())
}

/// The converter as a process of this user and group.
fn command_of(converter: &[String], (user, group): (u32, u32)) -> Command {
    let mut command = Command::new(&converter[0]);
    command.args(&converter[1..]);
    if rustix::process::geteuid().is_root() && user != 0 {
        command.uid(user).gid(group);
    }
    // A terminal's signals are for the supervisor.
    command.process_group(0);
    command
}

/// Create a file that nobody else may read, overwriting one that exists.
fn create_private(file: &Path) -> io::Result<File> {
    let file = private().create(true).truncate(false).open(file)?;
    // A file that exists keeps its permissions. A pipe or a device is no file of this program.
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
        file.set_len(0)?;
    }
    Ok(file)
}

/// Create a file in a folder, which disappears with its last user.
pub(crate) fn create_nameless(folder: &Path) -> io::Result<File> {
    let flag = rustix::fs::OFlags::TMPFILE.bits();
    private().custom_flags(flag as i32).open(folder)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(PRIVATE);
    options
}

/// One line about a file of an option that cannot be written.
pub(crate) fn named(option: &str, file: &Path, error: &io::Error) -> String {
    format!("{option}: {}: {error}; name a writable file", file.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn nobody_else_may_read_packets_even_if_the_file_existed() {
        let path = std::env::temp_dir().join(format!("anabranch-pcap-{}", std::process::id()));
        fs::write(&path, "of another program").expect("writable");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("its owner may");
        let common = CommonOptions { pcap: Some(path.clone()), ..CommonOptions::default() };
        CaptureFiles::create(&common).expect("writable");
        let metadata = fs::metadata(&path).expect("a file");
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (0, 0o600));
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_converter_that_cannot_be_started_is_noticed() {
        assert_eq!(check_converter(&["true".to_owned()], (0, 0)), Ok(()));
        let message = check_converter(&["/no/program".to_owned()], (0, 0)).expect_err("none");
        assert!(message.starts_with("qlog: /no/program: ") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn a_qlog_file_has_its_name_once_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("anabranch-qlog-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("run.qlog");
        let common = CommonOptions { qlog: Some(path.clone()), ..CommonOptions::default() };
        let convert = |program: &str| {
            let files = CaptureFiles::create(&common).expect("writable").expect("wanted");
            (&files.packets).write_all(b"packets").expect("it is open");
            files.convert(&[program.to_owned()], (0, 0)).expect("it starts")
        };
        assert!(!convert("false") && !path.exists());
        assert!(convert("cat"));
        assert_eq!(fs::read(&path).expect("a file"), b"packets");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::remove_dir_all(&folder).expect("removed");
        let message = CaptureFiles::create(&common).expect_err("no folder");
        assert!(message.starts_with("qlog: ") && !message.contains('\n'), "{message}");
    }
}
