//! Parts that users choose by name, and enums of them.

/// A part that users choose by name. The type holds its parameters.
pub trait Part {
    /// The name in scenarios.
    const NAME: &'static str;
    /// Effect of the part, in one sentence.
    const SUMMARY: &'static str;
    /// The publication that describes the part, or the implementation that it follows.
    const SOURCE: &'static str;
}

/// The constants of a [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// See [`Part::NAME`].
    pub name: &'static str,
    /// See [`Part::SUMMARY`].
    pub summary: &'static str,
    /// See [`Part::SOURCE`].
    pub source: &'static str,
}

impl Description {
    /// The constants of `P`.
    pub const fn of<P: Part>() -> Self {
        Description { name: P::NAME, summary: P::SUMMARY, source: P::SOURCE }
    }
}

/// One of several parts, with its parameters. [`parts!`](crate::parts!) defines such an enum.
pub trait Selection: Sized + 'static {
    /// Noun for a part in messages.
    const NOUN: &'static str;
    /// All parts.
    const ALL: &'static [Description];

    /// The selected part.
    fn description(&self) -> &'static Description;

    /// The name of the selected part.
    fn name(&self) -> &'static str {
        self.description().name
    }
}

/// Defines an enum of parts, and what messages call a part.
///
/// Every part is a type that implements [`Part`] and the trait behind `dyn`, through which the enum
/// gives access to all of them. In a crate with a feature `serde`, this feature adds
/// [`WrittenSelection`](crate::WrittenSelection) to the enum.
///
/// ```
/// use anabranch_config::{Part, Selection, parts};
///
/// trait Queue {
///     fn limit(&self) -> u64;
/// }
///
/// #[derive(Clone, Debug, PartialEq)]
/// #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
/// #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
/// struct Fifo {
///     /// Largest number of packets.
///     #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
///     packets: u64,
/// }
///
/// impl Default for Fifo {
///     fn default() -> Self {
///         Fifo { packets: 100 }
///     }
/// }
///
/// impl Part for Fifo {
///     const NAME: &'static str = "fifo";
///     const SUMMARY: &'static str = "First in, first out.";
///     const SOURCE: &'static str = "this project";
/// }
///
/// impl Queue for Fifo {
///     fn limit(&self) -> u64 {
///         self.packets
///     }
/// }
///
/// parts! {
///     /// A queue with its parameters.
///     enum AnyQueue: "queue", dyn Queue {
///         Fifo(Fifo),
///     }
/// }
///
/// let queue = AnyQueue::from(Fifo { packets: 9 });
/// assert_eq!((queue.name(), queue.part().limit()), ("fifo", 9));
/// # #[cfg(feature = "serde")] {
/// let table = "kind = \"fifo\"\npackets = 7".parse().unwrap();
/// let read: AnyQueue = anabranch_config::from_table(table, &[]).unwrap();
/// assert_eq!(read, Fifo { packets: 7 }.into());
/// # }
/// ```
#[macro_export]
macro_rules! parts {
    ($($definition:tt)+) => {
        $crate::parts_in_code! { $($definition)+ }

        #[cfg(feature = "serde")]
        $crate::parts_in_files! { $($definition)+ }
    };
}

/// [`parts!`](crate::parts!) for a crate that always needs serde.
#[cfg(feature = "serde")]
#[macro_export]
macro_rules! written_parts {
    ($($definition:tt)+) => {
        $crate::parts_in_code! { $($definition)+ }
        $crate::parts_in_files! { $($definition)+ }
    };
}

/// The part of [`parts!`](crate::parts!) that needs no serde.
#[doc(hidden)]
#[macro_export]
macro_rules! parts_in_code {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Parts:ident: $noun:literal, dyn $Interface:path {
            $($Variant:ident($Part:ty),)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility enum $Parts {
            $(
                #[doc = concat!("[`", stringify!($Part), "`].")]
                $Variant($Part),
            )+
        }

        impl $Parts {
            /// The selected part.
            $visibility fn part(&self) -> &dyn $Interface {
                match self { $($Parts::$Variant(part) => part),+ }
            }
        }

        impl $crate::Selection for $Parts {
            const NOUN: &'static str = $noun;
            const ALL: &'static [$crate::Description] =
                &[$($crate::Description::of::<$Part>()),+];

            fn description(&self) -> &'static $crate::Description {
                match self {
                    $($Parts::$Variant(_) => const { &$crate::Description::of::<$Part>() }),+
                }
            }
        }

        $(
            impl From<$Part> for $Parts {
                fn from(part: $Part) -> Self {
                    $Parts::$Variant(part)
                }
            }
        )+
    };
}

/// The part of [`parts!`](crate::parts!) that needs serde.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! parts_in_files {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $Parts:ident: $noun:literal, dyn $Interface:path {
            $($Variant:ident($Part:ty),)+
        }
    ) => {
        impl $crate::WrittenSelection for $Parts {
            const READERS: &'static [$crate::PartReader<Self>] =
                &[$($crate::PartReader {
                    description: $crate::Description::of::<$Part>(),
                    read: |table| $crate::written::read::<$Part>(table).map($Parts::$Variant),
                    schema: <$Part as $crate::macros::schemars::JsonSchema>::json_schema,
                    parameters: || {
                        static ALL: std::sync::LazyLock<Vec<$crate::Parameter>> =
                            std::sync::LazyLock::new($crate::Parameter::all_of::<$Part>);
                        &ALL
                    },
                }),+];

            fn parameters(&self) -> Vec<(&'static str, $crate::written::Value)> {
                match self { $($Parts::$Variant(part) => $crate::write(self, part)),+ }
            }
        }
    };
}

/// Defines a part without parameters.
///
/// ```
/// use anabranch_config::{Part, part_without_parameters};
///
/// part_without_parameters! {
///     /// Selects a queue without a limit.
///     pub struct Unlimited;
///     NAME = "unlimited";
///     SUMMARY = "Keeps every packet.";
///     SOURCE = "this project";
/// }
///
/// assert_eq!(Unlimited::NAME, "unlimited");
/// ```
#[macro_export]
macro_rules! part_without_parameters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Part:ident;
        NAME = $name:literal;
        SUMMARY = $summary:literal;
        SOURCE = $source:literal;
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
            serde(deny_unknown_fields)
        )]
        $visibility struct $Part {}

        impl $crate::Part for $Part {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const SOURCE: &'static str = $source;
        }
    };
}

/// Implements serde's and schemars' traits for an enum of [`parts!`](crate::parts!), in the form of
/// policies: the name alone, or a table with a kind and parameters.
#[cfg(feature = "serde")]
#[macro_export]
macro_rules! written_by_name {
    ($Parts:ty) => {
        impl $crate::macros::serde::Serialize for $Parts {
            fn serialize<S: $crate::macros::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                $crate::serialize(self, serializer)
            }
        }

        impl<'de> $crate::macros::serde::Deserialize<'de> for $Parts {
            fn deserialize<D: $crate::macros::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::deserialize(deserializer)
            }
        }

        impl $crate::macros::schemars::JsonSchema for $Parts {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $crate::schema::name_of::<$Parts>()
            }

            fn json_schema(
                generator: &mut $crate::macros::schemars::SchemaGenerator,
            ) -> $crate::macros::schemars::Schema {
                $crate::schema::name_or_table::<$Parts>(generator)
            }
        }
    };
}
