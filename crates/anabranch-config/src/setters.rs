//! Setters of options.

/// Setters for fields of a struct of options. Each takes the struct and returns it, so that calls can
/// be chained. The field gets the argument, or the value after `=>`.
///
/// ```
/// #[derive(Default)]
/// pub struct Options {
///     pub verbose: bool,
///     pub limit: Option<u64>,
/// }
///
/// anabranch_config::setters! { [] Options {
///     verbose: bool,
///     limit: impl Into<Option<u64>> => limit.into(),
/// } }
///
/// assert_eq!(Options::default().verbose(true).limit(3).limit, Some(3));
/// ```
///
/// The brackets name the lifetime of the struct, as in `[<'a>] Options<'a>`, or are empty.
#[macro_export]
macro_rules! setters {
    ([$($generics:tt)*] $options:ty { $($field:ident: $type:ty $(=> $value:expr)?,)+ }) => {
        impl $($generics)* $options {
            $(
                #[doc = concat!("Set the field [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $type) -> Self {
                    self.$field = $crate::setters!(@value $field $($value)?);
                    self
                }
            )+
        }
    };
    (@value $field:ident) => { $field };
    (@value $field:ident $value:expr) => { $value };
}
