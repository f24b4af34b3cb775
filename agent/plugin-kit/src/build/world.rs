//! The world of a plugin's kind, as the project's copy of the package's text has it.

use std::path::PathBuf;

use latido_plugin_host::{Kind, PACKAGE_VERSIONS};
use wit_bindgen_core::wit_parser::{PackageId, Resolve, UnresolvedPackageGroup, WorldId, WorldItem};

use super::BuildError;
use crate::project::Project;

/// The package whose worlds plugins are.
const PACKAGE: &str = "latido:plugin";

/// What a plugin exports and may import.
pub(crate) struct World {
    /// The package, for generators.
    pub(crate) resolve: Resolve,
    /// The world in it.
    pub(crate) id: WorldId,
    /// The kind whose world it is.
    pub(crate) kind: Kind,
    /// Its imports, with package and version: `latido:plugin/log@0.2.0`.
    pub(crate) imports: Vec<String>,
    /// Its exported functions, interface by interface.
    pub(crate) exports: Vec<(String, Vec<String>)>,
}

/// The name of a kind's world.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Sink => "storage-sink",
        Kind::Rule => "alert-rule",
        Kind::Strategy => "resume-strategy",
    }
}

impl World {
    /// Reads the project's `wit/`.
    pub(crate) fn of(project: &Project) -> Result<Self, BuildError> {
        let path = project.root().join("wit");
        let mut resolve = Resolve::default();
        let wrong = |message: String| BuildError::Wit { path: path.clone(), message };
        if !path.is_dir() {
            return Err(wrong("there is no such folder".to_owned()));
        }
        let group = UnresolvedPackageGroup::parse_dir(&path).map_err(|error| wrong(error.to_string()))?;
        let package = resolve.push_group(group).map_err(|error| wrong(format!("{error:#}")))?;
        let found = resolve.packages.get(package).map(|package| package.name.clone());
        let found = found.ok_or_else(|| wrong("it has no package".to_owned()))?;
        let version = found.version.as_ref().map(ToString::to_string).unwrap_or_default();
        if format!("{}:{}", found.namespace, found.name) != PACKAGE || !is_spoken(&version) {
            return Err(BuildError::OldPackage { path, found: found.to_string() });
        }
        Self::in_package(resolve, package, project.kind(), &version, path)
    }

    fn in_package(
        resolve: Resolve,
        package: PackageId,
        kind: Kind,
        version: &str,
        path: PathBuf,
    ) -> Result<Self, BuildError> {
        let wanted = ["lifecycle", kind.name()].map(|interface| format!("{PACKAGE}/{interface}@{version}"));
        let wrong = || BuildError::WrongWorld {
            path: path.clone(),
            world: name(kind),
            exports: wanted.clone().map(|export| format!("`{export}`")).join(" and "),
        };
        let id = resolve.select_world(&[package], Some(name(kind))).map_err(|_| wrong())?;
        let world = resolve.worlds.get(id).ok_or_else(wrong)?;
        let imports = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
        let functions = |item: &WorldItem| match item {
            WorldItem::Interface { id, .. } => {
                resolve.interfaces.get(*id).map(|interface| interface.functions.keys().cloned().collect())
            }
            WorldItem::Function(_) | WorldItem::Type { .. } => None,
        };
        let exports: Vec<(String, Vec<String>)> = world
            .exports
            .iter()
            .filter_map(|(key, item)| Some((resolve.name_world_key(key), functions(item)?)))
            .collect();
        if !wanted.iter().all(|wanted| exports.iter().any(|(name, _)| name == wanted)) {
            return Err(wrong());
        }
        Ok(Self { id, kind, imports, exports, resolve })
    }

    /// The world's name.
    pub(crate) fn name(&self) -> &'static str {
        name(self.kind)
    }

    /// The world's name as identifiers have it.
    pub(crate) fn snake(&self) -> String {
        self.name().replace('-', "_")
    }
}

/// Whether hosts speak this version of the package: before 1.0 the minor decides.
fn is_spoken(version: &str) -> bool {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    !version.contains('-') && PACKAGE_VERSIONS.iter().any(|spoken| minor(spoken) == minor(version))
}
