//! What the config says of plugins: where each comes from, what it is granted, what it may use.

use latido_plugin_host::WorkspaceGrant;
use latido_plugin_kit::{Digest, KeySource, Trust};

use super::super::document::{GrantTable, LimitsTable, PluginTable, SinkTable, WorkspaceTable};
use super::super::entry_kind::EntryKind;
use super::super::model::{Grant, PluginLimits, PluginSettings, SinkSettings};
use super::super::nearest::nearest;
use super::super::source::PluginSource;
use super::super::text::{Size, Text};
use super::{BUILTIN_SINKS, Check, PLUGIN_MEMORY_MIN};

impl Check<'_> {
    pub(super) fn sink(&mut self, index: usize, sink: SinkTable) -> SinkSettings {
        let entries = match sink.entries {
            Some(entries) => entries.into_iter().map(|text| text.0).collect(),
            None => EntryKind::ALL.to_vec(),
        };
        let SinkTable { name, source, digest, key, entries: _, grant, settings, limits } = sink;
        let plugin = PluginTable { name, source, digest, key, grant, settings, limits };
        SinkSettings { plugin: self.plugin(&format!("sink.{index}"), plugin, &BUILTIN_SINKS), entries }
    }

    pub(super) fn plugins(&mut self, kind: &str, tables: Vec<PluginTable>, built_in: &[&str]) -> Vec<PluginSettings> {
        let each = |(index, table)| self.plugin(&format!("{kind}.{index}"), table, built_in);
        tables.into_iter().enumerate().map(each).collect()
    }

    fn plugin(&mut self, path: &str, table: PluginTable, built_in: &[&str]) -> PluginSettings {
        self.check_name(&format!("{path}.name"), &table.name);
        let source = match table.source.0 {
            PluginSource::Builtin(name) => {
                if !built_in.contains(&name.as_str()) {
                    let near = nearest(&name, built_in).map(|near| format!("did you mean `builtin:{near}`?"));
                    let all = built_in.iter().map(|name| format!("`builtin:{name}`")).collect::<Vec<_>>().join(", ");
                    let hint = near.unwrap_or_else(|| format!("built in are {all}"));
                    self.refuse(&format!("{path}.source"), format!("no `builtin:{name}` of this kind"), Some(hint));
                }
                PluginSource::Builtin(name)
            }
            PluginSource::Installed(name) => PluginSource::Installed(name),
            PluginSource::File(file) => PluginSource::File(self.base.join(file)),
        };
        let trust = self.trust(path, (table.digest, table.key), &source);
        PluginSettings {
            name: table.name,
            source,
            trust,
            grant: self.grant(path, table.grant.unwrap_or_default()),
            settings: table.settings.unwrap_or_default(),
            limits: self.limits(path, table.limits.unwrap_or_default()),
        }
    }

    fn trust(
        &mut self,
        path: &str,
        (digest, key): (Option<Text<Digest>>, Option<Text<KeySource>>),
        source: &PluginSource,
    ) -> Trust {
        if matches!(source, PluginSource::Builtin(_)) {
            for (name, _) in [("digest", digest.is_some()), ("key", key.is_some())].into_iter().filter(|(_, is)| *is) {
                let why = "a built-in plugin is part of this program, and is trusted as that";
                self.refuse(&format!("{path}.{name}"), why, None);
            }
        }
        let key = key.map(|Text(key)| match key {
            KeySource::File(file) => KeySource::File(self.base.join(file)),
            KeySource::Key(key) => KeySource::Key(key),
        });
        Trust { digest: digest.map(|Text(digest)| digest), key }
    }

    fn grant(&mut self, path: &str, table: GrantTable) -> Grant {
        for (kind, names) in [("sql", &table.sql), ("files", &table.files)] {
            for (name, file) in names {
                if file.as_os_str().is_empty() {
                    self.refuse(&format!("{path}.grant.{kind}.{name}"), "it is empty; name a file", None);
                }
            }
        }
        let base = self.base;
        let http = table
            .http
            .map(|http| http.settings(base, |key, why| self.refuse(&format!("{path}.grant.http.{key}"), why, None)));
        let workspace = table.workspace.map(|table| self.workspace(path, table));
        Grant { sql: table.sql, files: table.files, http, workspace }
    }

    fn workspace(&mut self, path: &str, table: WorkspaceTable) -> WorkspaceGrant {
        let Some(Text(Size(read_max))) = table.read_max else { return WorkspaceGrant::default() };
        match u32::try_from(read_max) {
            Ok(read_max @ 1..=WorkspaceGrant::READ_MAX) => WorkspaceGrant { read_max },
            Ok(_) | Err(_) => {
                self.refuse(&format!("{path}.grant.workspace.read_max"), "write 1B to 16MiB", None);
                WorkspaceGrant::default()
            }
        }
    }

    fn limits(&mut self, path: &str, table: LimitsTable) -> PluginLimits {
        let default = PluginLimits::default();
        let limits = PluginLimits {
            memory_max: table.memory_max.map_or(default.memory_max, |size| size.0.0),
            cpu_for: table.cpu_for.map_or(default.cpu_for, |text| text.0),
            call_for: table.call_for.map_or(default.call_for, |text| text.0),
            batch_max: table.batch_max.unwrap_or(default.batch_max),
        };
        if limits.memory_max < PLUGIN_MEMORY_MIN {
            self.refuse(&format!("{path}.limits.memory_max"), "no plugin starts with less than 1MiB", None);
        }
        for (key, span) in [("cpu_for", limits.cpu_for), ("call_for", limits.call_for)] {
            if span.0.is_zero() {
                self.refuse(&format!("{path}.limits.{key}"), "0s would end every call", None);
            }
        }
        limits
    }
}
