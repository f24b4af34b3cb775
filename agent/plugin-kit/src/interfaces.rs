//! Where a component's interfaces differ from those of the package, function by function and in the package's own words.

use std::collections::BTreeSet;

use latido_plugin_host::PACKAGE;
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Function, Interface, Resolve, Type, TypeDefKind, WorldItem, WorldKey};

/// The texts of the package, by its versions.
const TEXTS: [(&str, &str); 2] = [
    ("0.2.0", include_str!("../../../wit/latido.wit")),
    ("0.1.0", include_str!("../../../wit/released/latido-0.1.0.wit")),
];

/// Differences that are told; more of them have the same cause.
const DIFFERENCES_MAX: usize = 8;

/// Types inside of a type that are shown, and how deep.
const SHOWN_MAX: usize = 8;
const DEPTH_MAX: usize = 3;

/// Where the interfaces of a component that was built against a version of the package differ from that version. Empty where
/// they do not, or where that cannot be told.
pub fn differences(component: &[u8], version: &str) -> Vec<String> {
    // Components of strangers are decoded by a library for tools, which may give up by a panic: an agent goes on.
    std::panic::catch_unwind(|| found(component, version)).unwrap_or_default()
}

fn found(component: &[u8], version: &str) -> Vec<String> {
    let Some((_, text)) = TEXTS.into_iter().find(|(known, _)| *known == version) else { return Vec::new() };
    let mut package = Resolve::default();
    if package.push_source("latido.wit", text).is_err() {
        return Vec::new();
    }
    let Ok(DecodedWasm::Component(plugin, world)) = decode(component) else { return Vec::new() };
    let Some(world) = plugin.worlds.get(world) else { return Vec::new() };
    let mut found = Vec::new();
    for (items, is_import) in [(&world.imports, true), (&world.exports, false)] {
        for (key, item) in items {
            let (WorldKey::Interface(_), WorldItem::Interface { id, .. }) = (key, item) else { continue };
            let Some(ours) = plugin.interfaces.get(*id) else { continue };
            if let Some(name) = name_of(&plugin, ours)
                && let Some((_, theirs)) = package.interfaces.iter().find(|(_, one)| one.name.as_deref() == Some(name))
            {
                compare(&plugin, ours, &package, theirs, (name, is_import), &mut found);
            }
        }
    }
    let more = found.len().saturating_sub(DIFFERENCES_MAX);
    found.truncate(DIFFERENCES_MAX);
    if more > 0 {
        found.push(format!("{more} more differences"));
    }
    found
}

/// The name of an interface of the package.
fn name_of<'r>(resolve: &'r Resolve, interface: &'r Interface) -> Option<&'r str> {
    let name = &resolve.packages.get(interface.package?)?.name;
    let is_ours = PACKAGE.split_once(':') == Some((name.namespace.as_str(), name.name.as_str()));
    interface.name.as_deref().filter(|_| is_ours)
}

fn compare(
    plugin: &Resolve,
    ours: &Interface,
    package: &Resolve,
    theirs: &Interface,
    (name, is_import): (&str, bool),
    found: &mut Vec<String>,
) {
    let names: BTreeSet<&String> = ours.functions.keys().chain(theirs.functions.keys()).collect();
    for function in names {
        match (ours.functions.get(function), theirs.functions.get(function)) {
            (Some(one), Some(other)) => {
                if let Some(difference) = of_functions((plugin, one), (package, other)) {
                    found.push(format!("`{function}` of `{name}`: {difference}"));
                }
            }
            (Some(_), None) if is_import => {
                let known: Vec<String> = theirs.functions.keys().map(|known| format!("`{known}`")).collect();
                let known = if known.is_empty() { "no functions".to_owned() } else { known.join(", ") };
                found.push(format!("it imports `{function}` of `{name}`, which has {known}"));
            }
            (None, Some(_)) if !is_import => found.push(format!("it does not export `{function}` of `{name}`")),
            // Of an interface that it imports it may use a part, and it may export more than is called.
            (Some(_) | None, None) | (None, Some(_)) => {}
        }
    }
}

type Of<'r, T> = (&'r Resolve, &'r T);

fn of_functions((plugin, ours): Of<'_, Function>, (package, theirs): Of<'_, Function>) -> Option<String> {
    let named = |function: &Function| function.params.iter().map(|param| param.name.clone()).collect::<Vec<_>>();
    if let Some(difference) = of_names("parameters", &named(ours), &named(theirs)) {
        return Some(difference);
    }
    let parameters = ours.params.iter().zip(&theirs.params);
    let mut differences = parameters.filter_map(|(one, other)| {
        of_types((plugin, &one.ty), (package, &other.ty)).map(|why| format!("parameter `{}`{why}", one.name))
    });
    differences.next().or_else(|| of_options((plugin, ours.result), (package, theirs.result), "its result"))
}

fn of_names(what: &str, ours: &[String], theirs: &[String]) -> Option<String> {
    let list = |names: &[String]| {
        if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
    };
    (ours != theirs).then(|| format!("{what} are {}, the package has {}", list(ours), list(theirs)))
}

fn of_options(
    (plugin, ours): (&Resolve, Option<Type>),
    (package, theirs): (&Resolve, Option<Type>),
    what: &str,
) -> Option<String> {
    match (ours, theirs) {
        (None, None) => None,
        (Some(one), Some(other)) => {
            of_types((plugin, &one), (package, &other)).map(|difference| format!("{what}{difference}"))
        }
        (Some(one), None) => Some(format!("{what} is {}, the package has none", shown(plugin, &one))),
        (None, Some(other)) => Some(format!("{what} is missing, the package has {}", shown(package, &other))),
    }
}

/// The first difference of two types, as what follows the name of what has them.
fn of_types((plugin, ours): Of<'_, Type>, (package, theirs): Of<'_, Type>) -> Option<String> {
    let (one, other) = (kind(plugin, ours), kind(package, theirs));
    let both = |one: &Type, other: &Type| of_types((plugin, one), (package, other));
    match (one, other) {
        (Ok(TypeDefKind::Record(one)), Ok(TypeDefKind::Record(other))) => {
            let names =
                |record: &wit_parser::Record| record.fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
            of_names(": its fields", &names(one), &names(other)).or_else(|| {
                let mut pairs = one.fields.iter().zip(&other.fields);
                pairs.find_map(|(one, other)| {
                    both(&one.ty, &other.ty).map(|why| format!(", its field `{}`{why}", one.name))
                })
            })
        }
        (Ok(TypeDefKind::Variant(one)), Ok(TypeDefKind::Variant(other))) => {
            let names =
                |variant: &wit_parser::Variant| variant.cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
            of_names(": its cases", &names(one), &names(other)).or_else(|| {
                let mut pairs = one.cases.iter().zip(&other.cases);
                pairs.find_map(|(one, other)| {
                    of_options((plugin, one.ty), (package, other.ty), "")
                        .map(|why| format!(", its case `{}`{why}", one.name))
                })
            })
        }
        (Ok(TypeDefKind::Enum(one)), Ok(TypeDefKind::Enum(other))) => {
            let names =
                |an_enum: &wit_parser::Enum| an_enum.cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
            of_names(": its cases", &names(one), &names(other))
        }
        (Ok(TypeDefKind::Result(one)), Ok(TypeDefKind::Result(other))) => {
            of_options((plugin, one.ok), (package, other.ok), ", when it succeeds,")
                .or_else(|| of_options((plugin, one.err), (package, other.err), ", when it fails,"))
        }
        (Ok(TypeDefKind::List(one)), Ok(TypeDefKind::List(other))) => {
            both(one, other).map(|why| format!(", its elements{why}"))
        }
        (Ok(TypeDefKind::Option(one)), Ok(TypeDefKind::Option(other))) => {
            both(one, other).map(|why| format!(", where it is there,{why}"))
        }
        _ => {
            let (one, other) = (shown(plugin, ours), shown(package, theirs));
            (one != other).then(|| format!(" is {one}, the package has {other}"))
        }
    }
}

/// What a type is, with its other names taken off; the type itself where it is one of the simple ones.
fn kind<'r>(resolve: &'r Resolve, of: &Type) -> Result<&'r TypeDefKind, Type> {
    let mut of = *of;
    // No type is an alias of itself: this ends.
    while let Type::Id(id) = of {
        match resolve.types.get(id).map(|definition| &definition.kind) {
            Some(TypeDefKind::Type(other)) => of = *other,
            Some(kind) => return Ok(kind),
            None => break,
        }
    }
    Err(of)
}

/// A type in WIT.
fn shown(resolve: &Resolve, of: &Type) -> String {
    match kind(resolve, of) {
        Ok(TypeDefKind::List(_) | TypeDefKind::Option(_) | TypeDefKind::Result(_) | TypeDefKind::Tuple(_)) | Err(_) => {
            format!("`{}`", bare(resolve, of, DEPTH_MAX))
        }
        Ok(other) => format!("a {}", other.as_str()),
    }
}

fn bare(resolve: &Resolve, of: &Type, depth: usize) -> String {
    let Some(below) = depth.checked_sub(1) else { return "…".to_owned() };
    let inner = |of: &Type| bare(resolve, of, below);
    let or_none = |of: &Option<Type>| of.as_ref().map_or_else(|| "_".to_owned(), inner);
    let simple = match kind(resolve, of) {
        Err(simple) => simple,
        Ok(TypeDefKind::List(of)) => return format!("list<{}>", inner(of)),
        Ok(TypeDefKind::Option(of)) => return format!("option<{}>", inner(of)),
        Ok(TypeDefKind::Result(of)) => return format!("result<{}, {}>", or_none(&of.ok), or_none(&of.err)),
        Ok(TypeDefKind::Tuple(tuple)) => {
            let mut types: Vec<String> = tuple.types.iter().take(SHOWN_MAX).map(inner).collect();
            types.extend((tuple.types.len() > SHOWN_MAX).then(|| "…".to_owned()));
            return format!("tuple<{}>", types.join(", "));
        }
        Ok(other) => return format!("a {}", other.as_str()),
    };
    let name = match simple {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(_) => "a type that is not there",
    };
    name.to_owned()
}
