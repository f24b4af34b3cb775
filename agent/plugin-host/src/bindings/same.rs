//! From a value of one version of the package to what it is in another.

/// Turns a value into what it is in the version `T` is of.
pub(super) trait Same<T> {
    fn same(self) -> T;
}

impl<A: Same<B>, B> Same<Option<B>> for Option<A> {
    fn same(self) -> Option<B> {
        self.map(Same::same)
    }
}

impl<A: Same<B>, B> Same<Vec<B>> for Vec<A> {
    fn same(self) -> Vec<B> {
        self.into_iter().map(Same::same).collect()
    }
}

/// What is the same in every version.
macro_rules! same {
    ($($what:ty),* $(,)?) => {
        $(impl Same<$what> for $what {
            fn same(self) -> $what {
                self
            }
        })*
    };
}

same!(bool, u8, u16, u32, u64, i32, i64, f64, String);
same!(crate::error::PluginError);

/// A record of one version that has the same fields in another, whose types may differ.
macro_rules! record {
    ($from:ident::$name:ident => $to:ident::$known:ident { $($field:ident),* $(,)? }) => {
        impl Same<$to::$known> for $from::$name {
            fn same(self) -> $to::$known {
                let $from::$name { $($field),* } = self;
                $to::$known { $($field: $field.same()),* }
            }
        }
    };
}

/// An enum or variant of one version, all of whose cases are there in another.
macro_rules! cases {
    ($from:ident::$name:ident => $to:ident::$known:ident { $($case:ident $(($value:ident))?),* $(,)? }) => {
        impl Same<$to::$known> for $from::$name {
            fn same(self) -> $to::$known {
                match self {
                    $($from::$name::$case $(($value))? => $to::$known::$case $(($value.same()))?,)*
                }
            }
        }
    };
}

pub(super) use {cases, record};
