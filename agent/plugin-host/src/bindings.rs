//! The versions of the WIT package that this host speaks, each in a file of its own.
//!
//! Each file turns components of its version into the traits of [`world`](crate::world), in the types of the newest version,
//! which are those of the rest of the crate. Nothing else knows of versions.

mod same;

/// Makes what the generator made of a kind's world the kind's trait, in all that differs between versions in types alone.
macro_rules! kind {
    ($world:ty, $ready:ty, $kind:path, $link:ident) => {
        impl World for $world {
            fn describe<'a>(&'a self, store: &'a mut Store<Guest>) -> Answer<'a, Description> {
                Box::pin(async move {
                    let said = self.latido_plugin_lifecycle().call_describe(store).await?;
                    Ok(Ok(Description {
                        name: said.name,
                        version: said.version,
                        summary: said.summary,
                        settings_schema: said.settings_schema,
                    }))
                })
            }

            fn configure<'a>(&'a self, store: &'a mut Store<Guest>, settings: &'a str) -> Answer<'a, ()> {
                Box::pin(async move {
                    let answer = self.latido_plugin_lifecycle().call_configure(store, settings).await?;
                    Ok(answer.map_err(Same::same))
                })
            }
        }

        impl Ready<dyn $kind> for $ready {
            fn instantiate<'a>(&'a self, store: &'a mut Store<Guest>) -> Instantiated<'a, dyn $kind> {
                Box::pin(async move { Ok(Box::new(self.instantiate_async(store).await?) as Box<dyn $kind>) })
            }
        }

        /// Links a component of this version.
        pub(crate) fn $link(
            linker: &mut Linker<Guest>,
            component: &Component,
        ) -> wasmtime::Result<Arc<dyn Ready<dyn $kind>>> {
            <$world>::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)?;
            Ok(Arc::new(<$ready>::new(linker.instantiate_pre(component)?)?))
        }
    };
}

pub(crate) mod v0_1;
pub(crate) mod v0_2;

/// The package whose interfaces a plugin imports and exports.
pub const PACKAGE: &str = "latido:plugin";

/// The versions of the package that this host speaks, the newest first.
pub const PACKAGE_VERSIONS: [&str; 2] = [Version::V0_2.text(), Version::V0_1.text()];

/// A version of the package. At most two are spoken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// `wit/latido.wit`
    V0_2,
    /// `wit/released/latido-0.1.0.wit`
    V0_1,
}

impl Version {
    /// The version as the package's text has it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::V0_2 => "0.2.0",
            Self::V0_1 => "0.1.0",
        }
    }

    /// The version that is spoken to a plugin of `version`: the one of the same compatibility track, which before 1.0 is the
    /// same minor. None where there is none.
    pub(crate) fn speaking(version: &str) -> Option<Self> {
        [Self::V0_2, Self::V0_1].into_iter().find(|spoken| is_compatible(version, spoken.text()))
    }
}

fn is_compatible(version: &str, with: &str) -> bool {
    let track = |version: &str| {
        let mut numbers = version.split('.').map(str::to_owned);
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        if major == "0" { format!("0.{minor}") } else { major }
    };
    !version.contains('-') && track(version) == track(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_judged_by_its_track() {
        assert_eq!(Version::speaking("0.2.0"), Some(Version::V0_2));
        assert_eq!(Version::speaking("0.2.7"), Some(Version::V0_2));
        assert_eq!(Version::speaking("0.1.3"), Some(Version::V0_1));
        for unknown in ["0.3.0", "0.0.1", "1.2.0", "0.2.0-rc", "0.20.0", ""] {
            assert_eq!(Version::speaking(unknown), None, "{unknown}");
        }
    }
}
