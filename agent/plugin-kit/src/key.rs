//! Keys that vouch for plugins: Ed25519, in the PEM that `openssl genpkey -algorithm ed25519` writes.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// What stands before the 32 bytes of a public key (RFC 8410, SubjectPublicKeyInfo).
const PUBLIC_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// What stands before the 32 bytes of a private key (RFC 8410, PKCS#8 version 1, which every openssl reads).
const PRIVATE_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The kinds of PEM that hold our keys.
const PUBLIC: &str = "PUBLIC KEY";
const PRIVATE: &str = "PRIVATE KEY";

/// A key's file has two hundred bytes; more is something else.
const FILE_MAX: u64 = 16 << 10;

/// How every public key begins in base64, after which it has 43 characters of its own.
const TEXT_START: &str = "MCowBQYDK2VwAyEA";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("read the key {}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// The file cannot be written; one that exists is never written over.
    #[error("write the key {}", path.display())]
    Write {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// The file holds something else.
    #[error("take the key {}: {why}", path.display())]
    Wrong {
        /// the file
        path: PathBuf,
        /// what it holds, and what is wanted
        why: String,
    },
    /// The machine gives no random numbers.
    #[error("make a key: the system gives no random numbers")]
    NoRandom,
}

/// Who vouches for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    /// Reads a public key from a file in PEM.
    ///
    /// # Errors
    ///
    /// Says what the file holds instead.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let wrong = |why: String| KeyError::Wrong { path: path.to_owned(), why };
        let (kind, bytes) = pem(path)?;
        if kind == PRIVATE {
            let hint = "`openssl pkey -in FILE -pubout` writes the public one, which is all that is needed here";
            return Err(wrong(format!("it is a private key; {hint}")));
        }
        if kind != PUBLIC {
            return Err(wrong(format!("it holds a {kind}, wanted is a {PUBLIC}")));
        }
        let key = bytes.strip_prefix(&PUBLIC_PREFIX).and_then(|key| key.try_into().ok());
        key.map(Self).ok_or_else(|| wrong(NOT_ED25519.to_owned()))
    }

    /// The key as a file in PEM has it.
    pub fn to_pem(&self) -> String {
        armoured(PUBLIC, &self.to_string())
    }
}

const NOT_ED25519: &str = "its key is not of Ed25519; `openssl genpkey -algorithm ed25519` makes one that is";

/// In base64, as the line of its PEM file has it.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode([&PUBLIC_PREFIX[..], &self.0].concat()))
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = STANDARD.decode(text).unwrap_or_default();
        let key = bytes.strip_prefix(&PUBLIC_PREFIX).and_then(|key| key.try_into().ok());
        key.map(Self).ok_or_else(|| format!("{text:?} is no public key of Ed25519 in base64"))
    }
}

/// What vouches for plugins. Whoever has it can vouch for any.
pub struct SigningKey(Ed25519KeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey of {}", self.public())
    }
}

impl SigningKey {
    /// Reads a private key from a file in PEM.
    ///
    /// # Errors
    ///
    /// Says what the file holds instead.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let wrong = |why: String| KeyError::Wrong { path: path.to_owned(), why };
        let (kind, bytes) = pem(path)?;
        if kind != PRIVATE {
            let hint = match kind.as_str() {
                "ENCRYPTED PRIVATE KEY" => "; `openssl pkey -in FILE` takes its passphrase off",
                "OPENSSH PRIVATE KEY" => {
                    "; keys of ssh are not taken, `openssl genpkey -algorithm ed25519` makes one that is"
                }
                PUBLIC => "; a private one is needed to sign",
                _ => "",
            };
            return Err(wrong(format!("it holds a {kind}, wanted is a {PRIVATE}{hint}")));
        }
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&bytes).map_err(|_| wrong(NOT_ED25519.to_owned()))?;
        Ok(Self(pair))
    }

    /// Makes a key, and writes it to a file that only its owner may read, and the public one beside it, with `.pub` behind
    /// its name. Neither may exist.
    ///
    /// # Errors
    ///
    /// Where one exists or cannot be written.
    pub fn make(path: &Path) -> Result<(Self, PathBuf), KeyError> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::NoRandom)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::NoRandom)?;
        let key = Self(pair);
        let mut name = path.as_os_str().to_owned();
        name.push(".pub");
        let public = PathBuf::from(name);
        if fs::symlink_metadata(&public).is_ok() {
            let source = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(KeyError::Write { path: public, source });
        }
        let private = armoured(PRIVATE, &STANDARD.encode([&PRIVATE_PREFIX[..], &seed].concat()));
        write_new(path, 0o600, &private)?;
        write_new(&public, 0o644, &key.public().to_pem())?;
        Ok((key, public))
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        // Of Ed25519 it has 32 bytes.
        bytes.iter_mut().zip(self.0.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        PublicKey(bytes)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// Where a public key is: in a file, or here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In this file, in PEM.
    File(PathBuf),
    /// This one.
    Key(PublicKey),
}

impl KeySource {
    /// Takes the text of a setting: a key in base64, else a path.
    ///
    /// # Errors
    ///
    /// Where it begins as a key and is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("it is empty; write a public key in base64, or the path of its file".to_owned())
        } else if text.starts_with(TEXT_START) {
            text.parse().map(Self::Key)
        } else {
            Ok(Self::File(text.into()))
        }
    }

    /// The key itself.
    ///
    /// # Errors
    ///
    /// Where the file does not hold one.
    pub fn key(&self) -> Result<PublicKey, KeyError> {
        match self {
            Self::File(path) => PublicKey::read(path),
            Self::Key(key) => Ok(*key),
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Key(key) => key.fmt(f),
        }
    }
}

fn armoured(kind: &str, base64: &str) -> String {
    format!("-----BEGIN {kind}-----\n{base64}\n-----END {kind}-----\n")
}

/// The first block of a PEM file: its kind and its bytes.
fn pem(path: &Path) -> Result<(String, Vec<u8>), KeyError> {
    let unread = |source| KeyError::Read { path: path.to_owned(), source };
    let wrong = |why: &str| KeyError::Wrong { path: path.to_owned(), why: why.to_owned() };
    let found = fs::metadata(path).map_err(unread)?;
    if !found.is_file() {
        return Err(wrong("it is no regular file")); // a pipe could keep whoever waits for it for ever
    }
    if found.len() > FILE_MAX {
        return Err(wrong("it is too large for a key in PEM"));
    }
    let text = fs::read(path).map_err(unread)?;
    let text = String::from_utf8(text).map_err(|_| wrong("it is no PEM; wanted is what `openssl genpkey` writes"))?;
    let none = || wrong("it holds no PEM block; wanted is what `openssl genpkey` writes");
    let (_, begun) = text.split_once("-----BEGIN ").ok_or_else(none)?;
    let (kind, rest) = begun.split_once("-----").ok_or_else(none)?;
    let (body, _) =
        rest.split_once(&format!("-----END {kind}-----")).ok_or_else(|| wrong("its PEM block has no end"))?;
    let body: String = body.chars().filter(|character| !character.is_whitespace()).collect();
    match STANDARD.decode(&body) {
        Ok(bytes) => Ok((kind.to_owned(), bytes)),
        // Blocks of other kinds may have lines that are no base64: their kind is what is wrong with them.
        Err(_) if kind != PUBLIC && kind != PRIVATE => Ok((kind.to_owned(), Vec::new())),
        Err(_) => Err(wrong("its PEM block is no base64")),
    }
}

fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), KeyError> {
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|source| KeyError::Write { path: path.to_owned(), source })
}
