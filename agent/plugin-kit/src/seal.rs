//! What the end of a component says of it: its digest, and who vouches for it.
//!
//! A pack is a component like any other, with custom sections behind the component's own:
//!
//! ```text
//! the component
//! `latido:manifest`   what it is and asks for, where the component had none of its own
//! `latido:signature`  last, and only if somebody vouches for it: 1 for its form, the public key (32 bytes), the signature (64)
//! ```
//!
//! The digest is the SHA-256 of all bytes before the section `latido:signature`; of a component without one, that is what
//! `sha256sum` prints. The signature is Ed25519 over [`CONTEXT`] and the digest.

use std::fmt;
use std::str::FromStr;

use ring::signature::{ED25519, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};
use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Parser, Payload};

use crate::key::{PublicKey, SigningKey};

/// The custom section that holds the signature.
pub const SIGNATURE_SECTION: &str = "latido:signature";

/// What is signed begins with this: no signature that a key gave for something else is one for a plugin.
const CONTEXT: &[u8] = b"latido plugin signature 1\0";

/// The one form that there is: key and signature of Ed25519.
const FORM: u8 = 1;

/// Bytes of a public key and of a signature.
const KEY_LENGTH: usize = 32;
const SIGNATURE_LENGTH: usize = 64;

/// How a digest is written.
const ALGORITHM: &str = "sha256:";

/// The SHA-256 of a component without its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn signed(self) -> Vec<u8> {
        [CONTEXT, &self.0].concat()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no digest; write `{ALGORITHM}` and 64 hexadecimal digits");
        let digits = text.strip_prefix(ALGORITHM).ok_or_else(wrong)?.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Why a component's end cannot be believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It ends too early, or is no WebAssembly.
    #[error("read it: it is truncated or damaged at byte {offset} of {length}: {message}")]
    Damaged {
        /// where
        offset: usize,
        /// how long it is
        length: usize,
        /// the decoder's words
        message: String,
    },
    /// There are two signatures, and nobody could say which of them counts.
    #[error("believe it: it has {count} sections `{SIGNATURE_SECTION}`, and one is the most")]
    Several {
        /// how many
        count: usize,
    },
    /// Something was put behind the signature, which does not cover it.
    #[error("believe it: {behind} bytes stand behind its section `{SIGNATURE_SECTION}`, which has to be the last")]
    NotLast {
        /// how many bytes
        behind: usize,
    },
    /// The section holds something else.
    #[error("believe it: its section `{SIGNATURE_SECTION}` is not of a form that this latido knows")]
    Form,
    /// The signature is not one of these bytes by this key.
    #[error(
        "believe it: it was changed after it was signed: its digest is {digest}, and the signature by {key} is of another"
    )]
    Tampered {
        /// of the bytes as they are
        digest: Digest,
        /// the key that the file names
        key: PublicKey,
    },
}

/// What the end of a component says of it. Where there is a signature, it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    digest: Digest,
    signer: Option<PublicKey>,
}

impl Seal {
    /// Reads the end of a component, and believes no signature that is not valid.
    ///
    /// # Errors
    ///
    /// Says why the end cannot be believed. A component without a signature is no error.
    pub fn read(component: &[u8]) -> Result<Self, SealError> {
        let found = signatures(component)?;
        let Some(last) = found.last() else { return Ok(Self { digest: Digest::of(component), signer: None }) };
        if found.len() > 1 {
            return Err(SealError::Several { count: found.len() });
        }
        if last.end != component.len() {
            return Err(SealError::NotLast { behind: component.len() - last.end });
        }
        let (form, rest) = last.data.split_first().ok_or(SealError::Form)?;
        let (key, signature) = rest.split_at_checked(KEY_LENGTH).ok_or(SealError::Form)?;
        let key = key.try_into().map(PublicKey).map_err(|_| SealError::Form)?;
        // The one way to write a section of this length: what stands before it is what the digest is of.
        let section = section(last.data);
        let before = component.strip_suffix(section.as_slice()).ok_or(SealError::Form)?;
        if *form != FORM || signature.len() != SIGNATURE_LENGTH {
            return Err(SealError::Form);
        }
        let digest = Digest::of(before);
        UnparsedPublicKey::new(&ED25519, key.0)
            .verify(&digest.signed(), signature)
            .map_err(|_| SealError::Tampered { digest, key })?;
        Ok(Self { digest, signer: Some(key) })
    }

    /// The digest of the component without its signature.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whose signature it has, if it has one.
    pub fn signer(&self) -> Option<PublicKey> {
        self.signer
    }
}

/// The component without a signature.
pub(crate) fn unsigned(component: &[u8]) -> Result<&[u8], SealError> {
    let signed = Seal::read(component)?.signer.is_some();
    let Some(data) =
        signed.then(|| signatures(component)).transpose()?.and_then(|found| found.last().map(|one| one.data))
    else {
        return Ok(component);
    };
    component.strip_suffix(section(data).as_slice()).ok_or(SealError::Form)
}

/// Puts a signature behind a component that has none.
pub(crate) fn sign(component: &mut Vec<u8>, key: &SigningKey) {
    let signature = key.sign(&Digest::of(component).signed());
    let mut data = vec![FORM];
    data.extend(key.public().0);
    data.extend(signature);
    component.extend(section(&data));
}

fn section(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    CustomSection { name: SIGNATURE_SECTION.into(), data: data.into() }.append_to(&mut bytes);
    bytes
}

struct Found<'c> {
    data: &'c [u8],
    end: usize,
}

/// What the parser says, which may be a list over many lines.
pub(crate) fn in_one_line(error: &wasmparser::BinaryReaderError) -> String {
    error.message().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The signatures of the component itself; what a module inside of it calls so is part of what is signed.
fn signatures(component: &[u8]) -> Result<Vec<Found<'_>>, SealError> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(|error| SealError::Damaged {
            offset: error.offset(),
            length: component.len(),
            message: in_one_line(&error),
        })?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let Payload::CustomSection(section) = payload
            && depth == 0
            && section.name() == SIGNATURE_SECTION
        {
            found.push(Found { data: section.data(), end: section.range().end });
        }
    }
    Ok(found)
}
