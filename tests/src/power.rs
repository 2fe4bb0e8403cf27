//! Takes the power away: after a SIGKILL, the database goes back to what was on the disk at the last sync.
//!
//! The `lastsync` shim under the server keeps a copy of each file as of its last sync. A kernel that loses its
//! power may have written more than that; it may not have written less.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::OnceLock,
};

use tempfile::TempDir;

use crate::{binary, server::Server};

/// The copies that one server's disk would still have after a power cut.
pub struct Disk {
    copies: TempDir,
}

impl Disk {
    /// Puts the shim under a server that is not started yet.
    ///
    /// # Panics
    ///
    /// If the shim does not compile.
    pub fn under(server: Server) -> (Self, Server) {
        let copies = tempfile::tempdir().expect("a temporary folder");
        let disk = Self { copies };
        let server = disk
            .variables(&server.data())
            .into_iter()
            .fold(server, |server, (name, value)| server.with_variable(name, value));
        (disk, server)
    }

    /// What the loader and the shim must be told to watch this folder.
    fn variables(&self, data: &Path) -> [(&'static str, PathBuf); 3] {
        // The kernel names files by their real paths, and so does the shim.
        let data = fs::canonicalize(data).expect("the data folder is there");
        let copies = self.copies.path().to_path_buf();
        [("LD_PRELOAD", shim()), ("LASTSYNC_DATA", data), ("LASTSYNC_COPIES", copies)]
    }

    /// What the disk holds of a killed server's database takes the place of what the kernel held: files that
    /// were never synced are gone, and so is the index of the write-ahead log, which lives in memory only.
    ///
    /// # Panics
    ///
    /// If the files cannot be moved.
    pub fn lose_power(&self, server: &Server) {
        self.restore(&server.data());
    }

    fn restore(&self, data: &Path) {
        for entry in fs::read_dir(data).expect("the data folder") {
            let path = entry.expect("the data folder").path();
            if is_database(&path) {
                fs::remove_file(&path).expect("a file can be removed");
            }
        }
        for entry in fs::read_dir(self.copies.path()).expect("the copies") {
            let path = entry.expect("the copies").path();
            if is_database(&path) {
                let name = path.file_name().expect("a file has a name");
                fs::copy(&path, data.join(name)).expect("a file can be copied");
            }
        }
    }

    /// How many database files were ever synced.
    pub fn synced(&self) -> usize {
        let entries = fs::read_dir(self.copies.path()).expect("the copies");
        entries.filter(|entry| entry.as_ref().is_ok_and(|entry| is_database(&entry.path()))).count()
    }
}

/// `relent.db`, its write-ahead log and its index.
fn is_database(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("relent.db"))
}

/// The shim, compiled once in each process under a name of its own until it is whole: tests of other processes
/// compile theirs.
fn shim() -> PathBuf {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(compile).clone()
}

fn compile() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/lastsync.c");
    let library = binary::profile_folder().join("lastsync.so");
    let aside = binary::profile_folder().join(format!("lastsync-{}.so", process::id()));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-shared", "-fPIC", "-pthread", "-o"]);
    let built = command.arg(&aside).arg(&source).arg("-ldl").output().expect("a C compiler");
    assert!(built.status.success(), "the shim does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
    fs::rename(&aside, &library).expect("a file can be renamed");
    library
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "the shim is made for the loader of Linux")]
    fn what_was_not_synced_is_gone_with_the_power() {
        let disk = Disk { copies: tempfile::tempdir().unwrap() };
        let data = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let mut shell = Command::new("sh");
            shell.arg("-ec").arg(script).current_dir(data.path()).envs(disk.variables(data.path()));
            assert!(shell.output().unwrap().status.success(), "{script}");
        };
        run("printf kept > more; dd if=more of=relent.db conv=fsync; printf ' and lost' >> relent.db");
        run("printf 'never synced' > relent.db-wal; printf 'another file' > token");
        assert_eq!(fs::read(data.path().join("relent.db")).unwrap(), b"kept and lost");
        disk.restore(data.path());
        assert_eq!(fs::read(data.path().join("relent.db")).unwrap(), b"kept");
        assert!(!data.path().join("relent.db-wal").exists(), "it was never synced");
        assert!(data.path().join("token").exists(), "only the database is put back");

        run("printf longer > more; dd if=more of=relent.db conv=fsync,notrunc; : > relent.db");
        disk.restore(data.path());
        assert_eq!(
            fs::read(data.path().join("relent.db")).unwrap(),
            b"longer",
            "of two syncs the last counts"
        );
        run("dd if=/dev/null of=relent.db conv=fdatasync");
        disk.restore(data.path());
        assert_eq!(fs::read(data.path().join("relent.db")).unwrap(), b"", "an empty file has a copy too");

        run("rm relent.db");
        disk.restore(data.path());
        assert!(data.path().join("relent.db").exists(), "its removal was never synced");
        run("rm relent.db; sync .");
        disk.restore(data.path());
        assert!(!data.path().join("relent.db").exists(), "its removal was synced");
    }
}
