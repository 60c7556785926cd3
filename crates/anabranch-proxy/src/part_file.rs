//! A file that has its name once it is complete.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file under another name, `NAME.part`, which disappears unless it becomes complete.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl PartFile {
    /// Create the file with these permissions, as far as the process's mask has them.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(path: &Path, mode: u32) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(true).mode(mode).open(&part)?;
        Ok(PartFile { path: path.to_owned(), part, file })
    }

    /// The file, to write to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The file is complete: give it its name, in place of a file that has this name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(crate) fn complete(self) -> io::Result<()> {
        fs::rename(&self.part, &self.path)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // It has its own name if it is complete.
        let _ = fs::remove_file(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_has_its_name_once_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("anabranch-part-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("file");
        let count = || fs::read_dir(&folder).expect("a folder").count();
        drop(PartFile::create(&path, 0o600).expect("writable"));
        assert_eq!(count(), 0);
        let file = PartFile::create(&path, 0o600).expect("writable");
        file.file().write_all(b"all").expect("it is open");
        assert!(!path.exists());
        file.complete().expect("renamed");
        assert_eq!((fs::read(&path).expect("a file"), count()), (b"all".to_vec(), 1));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
