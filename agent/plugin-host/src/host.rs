//! Loads plugins: judges their bytes, compiles them or takes them from the cache, links and starts them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::{Component, Linker};

use crate::Kind;
use crate::bindings::{PACKAGE, Version};
use crate::cache::{Cache, Compiler};
use crate::capability::Capabilities;
use crate::engine::Machine;
use crate::error::{HostError, LoadError};
use crate::guest::Guest;
use crate::instance::Plugin;
use crate::manifest::Manifest;
use crate::plugins::{Rule, Sink, Strategy};
use crate::spec::{Grants, PluginSpec};
use crate::world::{Description, Kinded, Ready, RuleWorld, SinkWorld, StrategyWorld};

/// How large a component may be: Python's, the largest measured, has 18 MB.
pub const COMPONENT_MAX: usize = 64 << 20;

/// What every component begins with, and what follows: the encoding's version and its layer.
const MAGIC: &[u8] = b"\0asm";
const CORE_LAYER: &[u8] = &[1, 0, 0, 0];

/// What a host needs to know.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// A private folder for compiled components; made with mode 0700 if it is not there.
    pub cache: PathBuf,
    /// Who compiles what is not in it; `None`: this process, without limits.
    pub compiler: Option<Arc<dyn Compiler>>,
    /// Whether plugins count the instructions that they run, as fuel: the same for the same work on every machine. They are
    /// slower by about a third then, and this process compiles them itself.
    pub metered: bool,
}

/// Loads plugins. Cheap to make: the engine comes with the first plugin.
pub struct Host {
    cache: Cache,
    metered: bool,
    machine: Mutex<Option<Arc<Machine>>>,
}

impl Host {
    /// Makes a host.
    ///
    /// # Errors
    ///
    /// Fails where the cache folder cannot be made, or is not this user's alone.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        let HostSettings { cache, compiler, metered } = settings;
        let compiler = compiler.filter(|_| !metered);
        Ok(Self { cache: Cache::open(&cache, compiler)?, metered, machine: Mutex::new(None) })
    }

    /// Loads a sink, and starts and configures its first instance.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the plugin, its grants or its settings.
    pub async fn load_sink(&self, spec: PluginSpec) -> Result<Sink, LoadError> {
        let (plugin, description) = self.load::<dyn SinkWorld>(spec).await?;
        Ok(Sink { plugin, description })
    }

    /// Loads a rule, and starts and configures its first instance.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the plugin, its grants or its settings.
    pub async fn load_rule(&self, spec: PluginSpec) -> Result<Rule, LoadError> {
        let (plugin, description) = self.load::<dyn RuleWorld>(spec).await?;
        Ok(Rule { plugin, description })
    }

    /// Loads a strategy, and starts and configures its first instance.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the plugin, its grants or its settings.
    pub async fn load_strategy(&self, spec: PluginSpec) -> Result<Strategy, LoadError> {
        let (plugin, description) = self.load::<dyn StrategyWorld>(spec).await?;
        Ok(Strategy { plugin, description })
    }

    /// Asks a plugin what it is, and tells the version of the package that it was built against. It is neither granted
    /// anything nor configured: all that has to be right is the component itself.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the component.
    pub async fn describe(&self, spec: PluginSpec) -> Result<(Description, &'static str), LoadError> {
        match spec.kind {
            Kind::Sink => self.describe_as::<dyn SinkWorld>(&spec).await,
            Kind::Rule => self.describe_as::<dyn RuleWorld>(&spec).await,
            Kind::Strategy => self.describe_as::<dyn StrategyWorld>(&spec).await,
        }
    }

    async fn describe_as<W: Kinded + ?Sized>(
        &self,
        spec: &PluginSpec,
    ) -> Result<(Description, &'static str), LoadError> {
        judge_bytes(spec)?;
        Manifest::read(&spec.name, &spec.component)?;
        let plugin = self.prepare::<W>(spec, Grants::default()).await?;
        let description = plugin.mould.describe_alone().await;
        let description = description.map_err(|source| LoadError::Start { plugin: spec.name.clone(), source })?;
        Ok((description, plugin.mould.version.text()))
    }

    async fn load<W: Kinded + ?Sized>(&self, spec: PluginSpec) -> Result<(Plugin<W>, Description), LoadError> {
        let named = || spec.name.clone();
        judge_bytes(&spec)?;
        if spec.kind != W::KIND {
            return Err(LoadError::WrongKind { plugin: named(), kind: W::KIND, found: spec.kind.name().to_owned() });
        }
        let manifest = Manifest::read(&spec.name, &spec.component)?;
        let grants = manifest.granted(&spec)?;
        let mut plugin = self.prepare::<W>(&spec, grants).await?;
        let description = plugin.start().await.map_err(|source| LoadError::Start { plugin: named(), source })?;
        Ok((plugin, description))
    }

    /// Compiles and links a component; no instance is made.
    async fn prepare<W: Kinded + ?Sized>(&self, spec: &PluginSpec, grants: Grants) -> Result<Plugin<W>, LoadError> {
        let named = || spec.name.clone();
        let machine =
            self.machine().map_err(|error| LoadError::Engine { plugin: named(), message: format!("{error:#}") })?;
        let component = self.component(&machine, spec).await?;
        let version = judge_interfaces::<W>(&machine, &component, spec)?;
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch {
            plugin: named(),
            version: version.text(),
            message: format!("{error:#}"),
        };
        let ready = link::<W>(&machine, &component, version).map_err(mismatch)?;
        let capabilities = Arc::new(Capabilities::new(spec, grants));
        let settings = spec.settings.to_string();
        Ok(Plugin::new(named(), spec.limits.clone(), version, machine, ready, settings, capabilities))
    }

    fn machine(&self) -> wasmtime::Result<Arc<Machine>> {
        let mut slot = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = &*slot {
            return Ok(Arc::clone(machine));
        }
        let machine = Arc::new(Machine::new(self.metered)?);
        *slot = Some(Arc::clone(&machine));
        Ok(machine)
    }

    /// Compiles on a thread of its own: nothing but other plugins that are to be compiled waits for it.
    async fn component(&self, machine: &Arc<Machine>, spec: &PluginSpec) -> Result<Component, LoadError> {
        let (cache, machine, bytes) = (self.cache.clone(), Arc::clone(machine), Arc::clone(&spec.component));
        let compiling = tokio::task::spawn_blocking(move || cache.component(&machine, &bytes));
        let broken = |message: String| LoadError::Compile { plugin: spec.name.clone(), message };
        match compiling.await {
            Ok(Ok(component)) => Ok(component),
            Ok(Err(error)) => Err(broken(format!("{error:#}"))),
            Err(error) => Err(broken(error.to_string())),
        }
    }
}

/// Judges what can be seen without compiling: is it a component at all?
fn judge_bytes(spec: &PluginSpec) -> Result<(), LoadError> {
    let (plugin, bytes) = (spec.name.clone(), &*spec.component);
    if bytes.len() > COMPONENT_MAX {
        return Err(LoadError::TooLarge { plugin, length: bytes.len(), limit: COMPONENT_MAX });
    }
    let found = if bytes.is_empty() {
        "an empty file"
    } else if bytes.starts_with(MAGIC) {
        let layer = bytes.get(MAGIC.len()..MAGIC.len() + CORE_LAYER.len());
        return if layer == Some(CORE_LAYER) { Err(LoadError::CoreModule { plugin }) } else { Ok(()) };
    } else if wasmtime::Engine::detect_precompiled(bytes).is_some() || bytes.starts_with(b"\x7fELF") {
        "compiled code, which is never accepted"
    } else if std::str::from_utf8(bytes).is_ok() {
        "a text"
    } else {
        "something else"
    };
    Err(LoadError::NotWasm { plugin, found })
}

/// Judges what the component imports and exports against what its kind may and must. Returns the version of the package that
/// it was built against.
fn judge_interfaces<W: Kinded + ?Sized>(
    machine: &Machine,
    component: &Component,
    spec: &PluginSpec,
) -> Result<Version, LoadError> {
    let ty = component.component_type();
    let imports: Vec<&str> = ty.imports(&machine.engine).map(|(name, _)| name).collect();
    let exports: Vec<&str> = ty.exports(&machine.engine).map(|(name, _)| name).collect();
    let version = version(&spec.name, imports.iter().chain(&exports).copied())?;
    for interface in ["lifecycle", W::KIND.name()] {
        if !exports.iter().any(|name| ours(name).is_some_and(|(exported, _)| exported == interface)) {
            let exports = if exports.is_empty() { "nothing".to_owned() } else { quoted(&exports) };
            return Err(LoadError::MissingExport {
                plugin: spec.name.clone(),
                kind: W::KIND,
                missing: format!("{PACKAGE}/{interface}@{}", version.text()),
                exports,
            });
        }
    }
    let offered = |name: &str| match ours(name) {
        // Interfaces of types alone are imported by whoever uses the types.
        Some((interface, _)) => W::IMPORTS.contains(&interface) || matches!(interface, "types" | "journal"),
        None => name.starts_with("wasi:") && !name.starts_with("wasi:http/"),
    };
    let foreign: Vec<&str> = imports.iter().copied().filter(|name| !offered(name)).collect();
    if foreign.is_empty() {
        return Ok(version);
    }
    let interfaces: Vec<String> = W::IMPORTS.iter().map(|name| format!("{PACKAGE}/{name}")).collect();
    Err(LoadError::ForeignImports {
        plugin: spec.name.clone(),
        kind: W::KIND,
        imports: quoted(&foreign),
        offered: format!("{} and WASI 0.2 without http", quoted(&interfaces)),
    })
}

fn quoted<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// The interface and version of a name of the package; nothing where the name is of another.
fn ours(name: &str) -> Option<(&str, &str)> {
    let interface = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(interface.split_once('@').unwrap_or((interface, "")))
}

/// The version that all of a plugin's interfaces of the package are of; the newest where it names none.
fn version<'a>(plugin: &str, names: impl Iterator<Item = &'a str>) -> Result<Version, LoadError> {
    let mut first: Option<(&str, Version)> = None;
    for name in names {
        let Some((_, version)) = ours(name) else { continue };
        let (plugin, found) = (plugin.to_owned(), name.to_owned());
        match (Version::speaking(version), first) {
            (None, _) => return Err(LoadError::WrongVersion { plugin, found }),
            (Some(spoken), None) => first = Some((name, spoken)),
            (Some(spoken), Some((one, known))) if spoken != known => {
                return Err(LoadError::MixedVersions { plugin, one: one.to_owned(), other: found });
            }
            (Some(_), Some(_)) => {}
        }
    }
    Ok(first.map_or(Version::V0_2, |(_, version)| version))
}

fn link<W: Kinded + ?Sized>(
    machine: &Machine,
    component: &Component,
    version: Version,
) -> wasmtime::Result<Arc<dyn Ready<W>>> {
    let mut linker: Linker<Guest> = Linker::new(&machine.engine);
    if component.component_type().imports(&machine.engine).any(|(name, _)| name.starts_with("wasi:")) {
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    }
    W::link(version, &mut linker, component)
}
