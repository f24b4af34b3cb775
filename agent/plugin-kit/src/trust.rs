//! What an operator demands of a component before any of it is looked at.

use crate::key::{KeyError, KeySource, PublicKey};
use crate::seal::{Digest, Seal, SealError};

/// What is demanded of a component. The default demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// it has this digest
    pub digest: Option<Digest>,
    /// this key vouches for it
    pub key: Option<KeySource>,
}

/// Why a component is not what was demanded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Its end cannot be believed.
    #[error("trust it")]
    Seal(#[source] SealError),
    /// It is another than the one that was pinned.
    #[error("trust it: its digest is {found}, pinned is {pinned}")]
    Digest {
        /// what it has
        found: Digest,
        /// what it was to have
        pinned: Digest,
    },
    /// The key that is demanded cannot be read.
    #[error("trust it")]
    Key(#[source] KeyError),
    /// Nobody vouches for it.
    #[error("trust it: it has no signature, and one by {key} is demanded")]
    Unsigned {
        /// whose was demanded
        key: PublicKey,
    },
    /// Somebody else vouches for it.
    #[error("trust it: its signature is by {found}, demanded is one by {key}")]
    OtherKey {
        /// whose it has
        found: PublicKey,
        /// whose was demanded
        key: PublicKey,
    },
}

impl Trust {
    /// Whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.digest.is_none() && self.key.is_none()
    }

    /// Judges a component. A signature that it has must be valid, also where none is demanded; what is no component at all
    /// is another's to judge, where nothing is demanded.
    ///
    /// # Errors
    ///
    /// Says what was found and what was demanded.
    pub fn judge(&self, component: &[u8]) -> Result<(), TrustError> {
        let seal = match Seal::read(component) {
            Ok(seal) => seal,
            Err(SealError::Damaged { .. }) if self.is_empty() => return Ok(()),
            Err(error) => return Err(TrustError::Seal(error)),
        };
        if let Some(pinned) = self.digest.filter(|pinned| *pinned != seal.digest()) {
            return Err(TrustError::Digest { found: seal.digest(), pinned });
        }
        let Some(key) = &self.key else { return Ok(()) };
        let key = key.key().map_err(TrustError::Key)?;
        match seal.signer() {
            None => Err(TrustError::Unsigned { key }),
            Some(found) if found != key => Err(TrustError::OtherKey { found, key }),
            Some(_) => Ok(()),
        }
    }
}
