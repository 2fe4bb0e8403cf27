//! The API token: from the environment, or made once in the data folder.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use subtle::ConstantTimeEq as _;

use crate::exit::Misuse;

/// A secret that opens the API, and where it is written.
pub(super) struct Token {
    secret: String,
    file: Option<PathBuf>,
}

impl Token {
    /// The token of the environment (`RELENT_TOKEN`), if it is set.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if it could not stand in a header.
    pub(super) fn from_environment(secret: Option<String>) -> anyhow::Result<Option<Self>> {
        let Some(secret) = secret else { return Ok(None) };
        check(&secret).map_err(|why| Misuse::new(format!("RELENT_TOKEN {why}")))?;
        Ok(Some(Self { secret, file: None }))
    }

    /// The token of a data folder, made on the first start. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or holds no token.
    pub(super) fn of_folder(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("token");
        let secret = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secret = generate()?;
                write(folder, &path, &secret).with_context(|| format!("cannot write {}", path.display()))?;
                secret
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        check(&secret).map_err(|why| {
            anyhow::anyhow!("{} {why}; remove it and a new one is made at the next start", path.display())
        })?;
        warn_if_others_read(&path);
        Ok(Self { secret, file: Some(path) })
    }

    /// Where clients find it, in words.
    pub(super) fn place(&self) -> String {
        self.file.as_ref().map_or_else(|| "RELENT_TOKEN".to_owned(), |file| file.display().to_string())
    }

    /// Whether this is the token. The time it takes tells nothing but the length.
    pub(super) fn is(&self, presented: &[u8]) -> bool {
        self.secret.as_bytes().ct_eq(presented).into()
    }
}

fn check(secret: &str) -> Result<(), &'static str> {
    if secret.is_empty() {
        return Err("is empty");
    }
    if secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(())
    } else {
        Err("may have only visible ASCII characters")
    }
}

/// 32 bytes of the operating system's chance, in hex.
fn generate() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the operating system gives no random bytes for the token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// All of it or nothing, readable by the owner alone, on disk when this returns.
fn write(folder: &Path, path: &Path, secret: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "{secret}")?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)?;
    fs::File::open(folder)?.sync_all()
}

fn warn_if_others_read(path: &Path) {
    if let Ok(metadata) = fs::metadata(path)
        && metadata.permissions().mode() & 0o077 != 0
    {
        tracing::warn!(file = %path.display(), "others on this machine may read the token; run chmod 600 on it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = Token::of_folder(folder.path()).unwrap();
        let found = Token::of_folder(folder.path()).unwrap();
        assert_eq!(made.secret.len(), 64);
        assert_eq!(made.secret, found.secret);
        assert!(found.is(made.secret.as_bytes()));
        assert!(!found.is(&made.secret.as_bytes()[1..]) && !found.is(b""));
        let other = Token::of_folder(tempfile::tempdir().unwrap().path()).unwrap();
        assert_ne!(made.secret, other.secret);
    }

    #[test]
    fn a_token_that_opens_nothing_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token"), "\n").unwrap();
        assert!(Token::of_folder(folder.path()).is_err_and(|error| error.to_string().contains("is empty")));
        for secret in ["", "two words", "né"] {
            assert!(Token::from_environment(Some(secret.to_owned())).is_err(), "{secret:?}");
        }
        assert!(Token::from_environment(None).is_ok_and(|token| token.is_none()));
    }
}
