//! What the operator says about requests over HTTP: where to, with which secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use crate::capability::http::Network;

/// Bytes of a secret: a key in a file, not a document.
const SECRET_MAX: usize = 64 << 10;

/// Where a plugin may send requests, and what the host fills in for it.
#[derive(Clone)]
pub struct HttpGrant {
    /// Origins, in the form that [`origin`](crate::origin) gives them.
    pub origins: BTreeSet<String>,
    /// Networks that may be dialled although they are not of the internet.
    pub private: Vec<Network>,
    /// A file of certificates in PEM that are trusted, in place of the machine's.
    pub ca: Option<PathBuf>,
    /// Secrets by the plugin's name for them.
    pub secrets: BTreeMap<String, Secret>,
    /// Who knows what addresses a name has.
    pub names: Arc<dyn Names>,
}

impl HttpGrant {
    /// Requests to these origins, by the machine's names and certificates, without secrets.
    pub fn to(origins: impl IntoIterator<Item = String>) -> Self {
        Self {
            origins: origins.into_iter().collect(),
            private: Vec::new(),
            ca: None,
            secrets: BTreeMap::new(),
            names: Arc::new(SystemNames),
        }
    }
}

impl fmt::Debug for HttpGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpGrant")
            .field("origins", &self.origins)
            .field("private", &self.private)
            .field("secrets", &self.secrets.keys())
            .finish_non_exhaustive()
    }
}

/// Where the value of a secret is. It is read at each use, so that a changed one needs no restart.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// In this variable of the agent's environment.
    Variable(String),
    /// In this file; a line feed at its end does not count.
    File(PathBuf),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}

impl Secret {
    /// The value at this moment. Blocks as long as reading a file takes.
    ///
    /// # Errors
    ///
    /// Says what is wrong, never what the value is.
    pub fn value(&self) -> Result<String, String> {
        let value = match self {
            Self::Variable(name) => {
                std::env::var(name).map_err(|_| format!("the variable {name} is not set, or not in UTF-8"))?
            }
            Self::File(path) => {
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
            }
        };
        let value = value.trim_end_matches(['\n', '\r']);
        if value.is_empty() || value.len() > SECRET_MAX {
            return Err(format!("{self:?} has {} bytes, from 1 to {SECRET_MAX} are expected", value.len()));
        }
        Ok(value.to_owned())
    }
}

/// A look-up under way.
pub type LookingUp<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Knows what addresses a name has. It is asked once for each connection, and one of its answers is dialled.
pub trait Names: Send + Sync {
    /// Looks a name up; an address stands for itself.
    fn look_up<'a>(&'a self, name: &'a str, port: u16) -> LookingUp<'a>;
}

/// The machine's own way of looking up names.
#[derive(Debug)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up<'a>(&'a self, name: &'a str, port: u16) -> LookingUp<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    }
}
