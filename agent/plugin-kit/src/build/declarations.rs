//! The interface as TypeScript declares it: what editors know of a plugin in JavaScript. The build does not read it.
#![expect(clippy::wildcard_enum_match_arm, reason = "the parser has types that no plugin's interface uses")]

use wit_bindgen_core::wit_parser::{Docs, Function, Interface, Resolve, Type, TypeDef, TypeDefKind, TypeId, TypeOwner};

use super::World;

/// The declarations of every interface of the package, each as the module that JavaScript imports.
pub(super) fn of(world: &World) -> String {
    let mut text = String::from("// Written by `latido plugin`, from wit/latido.wit.\n");
    for (_, interface) in world.resolve.interfaces.iter() {
        if let Some(name) = module(&world.resolve, interface) {
            text.push_str(&format!("\ndeclare module \"{name}\" {{\n"));
            for (name, id) in &interface.types {
                text.push_str(&declared(&world.resolve, interface, name, *id));
            }
            for function in interface.functions.values() {
                text.push_str(&self::function(&world.resolve, interface, function));
            }
            text.push_str("}\n");
        }
    }
    text
}

fn module(resolve: &Resolve, interface: &Interface) -> Option<String> {
    let package = resolve.packages.get(interface.package?)?;
    Some(package.name.interface_id(interface.name.as_deref()?))
}

fn declared(resolve: &Resolve, within: &Interface, name: &str, id: TypeId) -> String {
    let Some(definition) = resolve.types.get(id) else { return String::new() };
    let (docs, name) = (comment(&definition.docs, "  "), upper(name));
    if let TypeDefKind::Record(record) = &definition.kind {
        let fields: String = record
            .fields
            .iter()
            .map(|field| {
                let held = ty(resolve, within, field.ty);
                format!("{}    {}: {held};\n", comment(&field.docs, "    "), lower(&field.name))
            })
            .collect();
        return format!("{docs}  export interface {name} {{\n{fields}  }}\n");
    }
    format!("{docs}  export type {name} = {};\n", kind(resolve, within, definition))
}

fn kind(resolve: &Resolve, within: &Interface, definition: &TypeDef) -> String {
    match &definition.kind {
        TypeDefKind::Enum(cases) => {
            cases.cases.iter().map(|case| format!("\"{}\"", case.name)).collect::<Vec<_>>().join(" | ")
        }
        TypeDefKind::Variant(variant) => {
            let case = |name: &str, holds: Option<Type>| match holds {
                Some(holds) => format!("{{ tag: \"{name}\"; val: {} }}", ty(resolve, within, holds)),
                None => format!("{{ tag: \"{name}\" }}"),
            };
            variant.cases.iter().map(|one| case(&one.name, one.ty)).collect::<Vec<_>>().join(" | ")
        }
        TypeDefKind::Option(inner) => format!("{} | null", ty(resolve, within, *inner)),
        TypeDefKind::List(Type::U8) => "Uint8Array".to_owned(),
        TypeDefKind::List(inner) => format!("Array<{}>", ty(resolve, within, *inner)),
        // What is wrong is thrown.
        TypeDefKind::Result(result) => result.ok.map_or_else(|| "void".to_owned(), |ok| ty(resolve, within, ok)),
        TypeDefKind::Type(inner) => ty(resolve, within, *inner),
        _ => "unknown".to_owned(),
    }
}

fn ty(resolve: &Resolve, within: &Interface, ty: Type) -> String {
    match ty {
        Type::Bool => "boolean".to_owned(),
        Type::Char | Type::String => "string".to_owned(),
        Type::Id(id) => {
            let Some(definition) = resolve.types.get(id) else { return "unknown".to_owned() };
            let (Some(name), TypeOwner::Interface(owner)) = (&definition.name, definition.owner) else {
                return kind(resolve, within, definition);
            };
            match resolve.interfaces.get(owner) {
                Some(owner) if owner.name != within.name => match module(resolve, owner) {
                    Some(module) => format!("import(\"{module}\").{}", upper(name)),
                    None => "unknown".to_owned(),
                },
                _ => upper(name),
            }
        }
        _ => "number".to_owned(),
    }
}

fn function(resolve: &Resolve, within: &Interface, function: &Function) -> String {
    let parameters: Vec<String> = function
        .params
        .iter()
        .map(|parameter| format!("{}: {}", lower(&parameter.name), ty(resolve, within, parameter.ty)))
        .collect();
    let result = function.result.map_or_else(|| "void".to_owned(), |result| ty(resolve, within, result));
    let (docs, name) = (comment(&function.docs, "  "), lower(&function.name));
    format!("{docs}  export function {name}({}): {result};\n", parameters.join(", "))
}

fn comment(docs: &Docs, indent: &str) -> String {
    let Some(text) = &docs.contents else { return String::new() };
    let text = text.trim().replace("*/", "* /").replace('\n', &format!("\n{indent} * "));
    format!("{indent}/** {text} */\n")
}

/// `cost-usd` is `costUsd`.
fn lower(name: &str) -> String {
    let mut words = name.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

/// `plugin-error` is `PluginError`.
fn upper(name: &str) -> String {
    name.split('-').map(capital).collect()
}

fn capital(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
