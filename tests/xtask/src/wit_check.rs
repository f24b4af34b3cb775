//! `cargo xtask wit-check`: compares `wit/` with the last release of the package, which lies in `wit/released/`.
//!
//! The host links by exact match, so a change of anything that a compiled plugin may use breaks it; what is added does
//! not, unless plugins would have to have it. The package is turned into a list of items, each with its place and its
//! shape in words, and the two lists are compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use wit_parser::{FunctionKind, Resolve, Type, TypeDefKind, TypeId, WorldItem, WorldKey};

use crate::say;

/// Items of a package by their place, each with its shape.
type Shapes = BTreeMap<String, String>;

/// What is between two versions of the package.
#[derive(Debug, Default, PartialEq, Eq)]
struct Differences {
    breaking: Vec<String>,
    added: Vec<String>,
}

/// A version: major, minor, patch.
type Version = (u64, u64, u64);

/// Compares, and says compatible or breaking and where.
///
/// # Errors
///
/// Fails where the version does not say what the difference is: a break needs another track, an addition another version.
pub(crate) fn check(root: &Path) -> Result<()> {
    let (released, path) = last_release(&root.join("wit/released"))?;
    let (current, new) = read(&root.join("wit/latido.wit"))?;
    let (_, old) = read(&path)?;
    let differences = compare(&old, &new);
    for place in &differences.breaking {
        say::line(format_args!("breaking: {place}"));
    }
    for place in &differences.added {
        say::line(format_args!("added: {place}"));
    }
    say::line(verdict(&differences, released, current)?);
    Ok(())
}

/// What the versions have to say about the differences, and whether they do.
fn verdict(differences: &Differences, released: Version, current: Version) -> Result<String> {
    let named = |(major, minor, patch): Version| format!("{major}.{minor}.{patch}");
    let (old, new) = (named(released), named(current));
    if !differences.breaking.is_empty() {
        ensure!(
            track(current) > track(released),
            "the package breaks plugins of {old} in {} places and calls itself {new}; it needs another {}",
            differences.breaking.len(),
            if released.0 == 0 { "minor version" } else { "major version" }
        );
        return Ok(format!("wit/ {new} is breaking against {old}, as its version says"));
    }
    if !differences.added.is_empty() {
        ensure!(
            current > released,
            "the package has more than {old} and calls itself {new}; it needs a higher version"
        );
        return Ok(format!("wit/ {new} is compatible with {old} and has more"));
    }
    Ok(format!("wit/ {new} is the same as {old}"))
}

/// The part of a version within which plugins go on working.
fn track((major, minor, _): Version) -> (u64, u64) {
    if major == 0 { (0, minor) } else { (major, 0) }
}

fn last_release(folder: &Path) -> Result<(Version, PathBuf)> {
    let mut newest: Option<(Version, PathBuf)> = None;
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let version = name.strip_prefix("latido-").and_then(version);
        let version = version.with_context(|| format!("{} is not named latido-VERSION.wit", path.display()))?;
        if newest.as_ref().is_none_or(|(known, _)| version > *known) {
            newest = Some((version, path));
        }
    }
    newest.with_context(|| format!("{} holds no release", folder.display()))
}

fn version(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    let version = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(version)
}

fn read(path: &Path) -> Result<(Version, Shapes)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&path.display().to_string(), &text)
}

fn parse(name: &str, text: &str) -> Result<(Version, Shapes)> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str(name, text).map_err(|error| anyhow::anyhow!("cannot parse {name}: {error}"))?;
    let package = &resolve.packages[package];
    let Some(number) = &package.name.version else { bail!("{name} has a package without a version") };
    let mut shapes = Shapes::new();
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        for (item, id) in &interface.types {
            let definition = &resolve.types[*id];
            shapes.insert(format!("interface {name}, {item}"), definition_shape(&resolve, &definition.kind));
        }
        for (item, function) in &interface.functions {
            shapes.insert(format!("interface {name}, {item}"), function_shape(&resolve, function));
        }
    }
    for (name, id) in &package.worlds {
        let world = &resolve.worlds[*id];
        for (direction, items) in [("import", &world.imports), ("export", &world.exports)] {
            for (key, item) in items {
                shapes.insert(
                    format!("world {name}, {direction} {}", key_name(&resolve, key)),
                    item_shape(&resolve, item),
                );
            }
        }
    }
    Ok(((number.major, number.minor, number.patch), shapes))
}

fn compare(old: &Shapes, new: &Shapes) -> Differences {
    let mut differences = Differences::default();
    for (place, shape) in old {
        match new.get(place) {
            None => differences.breaking.push(format!("{place}: gone")),
            Some(now) if now != shape => differences.breaking.push(format!("{place}: was {shape}, is {now}")),
            Some(_) => {}
        }
    }
    let interfaces = |place: &str| place.split(',').next().unwrap_or_default().to_owned();
    for (place, shape) in new.iter().filter(|(place, _)| !old.contains_key(*place)) {
        // Compiled plugins of a world that was there before do not have what it exports besides.
        let known_world = place.contains(", export ") && old.keys().any(|known| interfaces(known) == interfaces(place));
        let list = if known_world { &mut differences.breaking } else { &mut differences.added };
        list.push(format!("{place}: {shape}"));
    }
    differences
}

fn key_name(resolve: &Resolve, key: &WorldKey) -> String {
    match key {
        WorldKey::Name(name) => name.clone(),
        WorldKey::Interface(id) => resolve.interfaces[*id].name.clone().unwrap_or_default(),
    }
}

fn item_shape(resolve: &Resolve, item: &WorldItem) -> String {
    match item {
        WorldItem::Interface { .. } => "an interface".to_owned(),
        WorldItem::Function(function) => function_shape(resolve, function),
        WorldItem::Type { id, .. } => definition_shape(resolve, &resolve.types[*id].kind),
    }
}

fn function_shape(resolve: &Resolve, function: &wit_parser::Function) -> String {
    let params: Vec<String> =
        function.params.iter().map(|param| format!("{}: {}", param.name, type_shape(resolve, &param.ty))).collect();
    let result = function.result.as_ref().map(|result| format!(" -> {}", type_shape(resolve, result)));
    let kind =
        if function.kind == FunctionKind::Freestanding { "func".to_owned() } else { format!("{:?}", function.kind) };
    format!("{kind}({}){}", params.join(", "), result.unwrap_or_default())
}

/// A type where it is used: its name, or its shape where it has none.
fn type_shape(resolve: &Resolve, ty: &Type) -> String {
    if let Type::Id(id) = ty { named_shape(resolve, *id) } else { format!("{ty:?}").to_lowercase() }
}

fn named_shape(resolve: &Resolve, id: TypeId) -> String {
    let definition = &resolve.types[id];
    definition.name.clone().unwrap_or_else(|| definition_shape(resolve, &definition.kind))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "kinds that the package has none of, and whatever wit-parser adds")]
fn definition_shape(resolve: &Resolve, kind: &TypeDefKind) -> String {
    let shape = |ty: &Type| type_shape(resolve, ty);
    let maybe = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), shape);
    match kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| format!("{}: {}", field.name, shape(&field.ty)));
            format!("record {{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| format!("{}({})", case.name, maybe(&case.ty)));
            format!("variant {{ {} }}", cases.collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Enum(cases) => {
            let names: Vec<&str> = cases.cases.iter().map(|case| case.name.as_str()).collect();
            format!("enum {{ {} }}", names.join(", "))
        }
        TypeDefKind::Flags(flags) => {
            let names: Vec<&str> = flags.flags.iter().map(|flag| flag.name.as_str()).collect();
            format!("flags {{ {} }}", names.join(", "))
        }
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", tuple.types.iter().map(shape).collect::<Vec<_>>().join(", ")),
        TypeDefKind::Option(ty) => format!("option<{}>", shape(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", shape(ty)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", maybe(&result.ok), maybe(&result.err)),
        TypeDefKind::Type(ty) => shape(ty),
        other => format!("{other:?}"), // the package has none of these; what changes in one shows all the same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "package a:b@0.1.0;
        interface i { enum e { x, y }  record r { e: e }  f: func(r: r) -> result<_, string>; }
        interface j { g: func(); }
        world w { import i; export j; }";

    fn against_old(change: impl Fn(&str) -> String) -> Differences {
        let (_, old) = parse("old", OLD).unwrap();
        let (_, new) = parse("new", &change(OLD)).unwrap();
        compare(&old, &new)
    }

    #[test]
    fn a_new_case_field_parameter_or_order_breaks_and_the_place_is_named() {
        for (from, to, place) in [
            ("x, y", "x, y, z", "interface i, e: was enum { x, y }, is enum { x, y, z }"),
            ("x, y", "y, x", "interface i, e: was enum { x, y }, is enum { y, x }"),
            ("e: e", "e: e, n: u64", "interface i, r: was record { e: e }, is record { e: e, n: u64 }"),
            ("g: func()", "g: func(n: u8)", "interface j, g: was func(), is func(n: u8)"),
            ("import i;", "", "world w, import i: gone"),
        ] {
            let differences = against_old(|text| text.replace(from, to));
            assert!(differences.breaking.iter().any(|told| told == place), "{from}: {differences:?}");
        }
    }

    #[test]
    fn what_is_added_breaks_nobody_unless_plugins_have_to_have_it() {
        let more = against_old(|text| text.replace("g: func();", "g: func(); h: func(); type t = u8;"));
        assert_eq!(more.breaking, Vec::<String>::new());
        assert_eq!(more.added, ["interface j, h: func()", "interface j, t: u8"]);
        let imported = against_old(|text| text.replace("world w { import i;", "world w { import i; import j;"));
        assert!(imported.breaking.is_empty() && imported.added.len() == 1, "{imported:?}");
        let exported = against_old(|text| text.replace("export j;", "export j; export k;") + "interface k {}");
        assert_eq!(exported.breaking, ["world w, export k: an interface"]);
    }

    #[test]
    fn a_version_that_hides_a_break_is_refused() {
        let breaks = Differences { breaking: vec!["somewhere".to_owned()], added: Vec::new() };
        let adds = Differences { breaking: Vec::new(), added: vec!["something".to_owned()] };
        assert!(verdict(&breaks, (0, 1, 0), (0, 1, 9)).is_err());
        assert!(verdict(&breaks, (0, 1, 0), (0, 2, 0)).is_ok());
        assert!(verdict(&breaks, (1, 1, 0), (1, 2, 0)).is_err());
        assert!(verdict(&breaks, (1, 1, 0), (2, 0, 0)).is_ok());
        assert!(verdict(&adds, (1, 1, 0), (1, 1, 0)).is_err());
        assert!(verdict(&adds, (1, 1, 0), (1, 2, 0)).unwrap().contains("compatible"));
        assert!(verdict(&Differences::default(), (1, 1, 0), (1, 1, 0)).is_ok());
    }
}
