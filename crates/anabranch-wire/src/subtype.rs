//! Subtypes of the Multipath TCP option. Error messages use their names.

/// The subtypes of RFC 8684 §7.2, except the experimental subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Subtype {
    /// MP_CAPABLE.
    Capable = 0,
    /// MP_JOIN.
    Join = 1,
    /// DSS.
    Dss = 2,
    /// ADD_ADDR.
    AddAddr = 3,
    /// REMOVE_ADDR.
    RemoveAddr = 4,
    /// MP_PRIO.
    Prio = 5,
    /// MP_FAIL.
    Fail = 6,
    /// MP_FASTCLOSE.
    Fastclose = 7,
    /// MP_TCPRST.
    Tcprst = 8,
}

impl Subtype {
    /// The subtype with this 4-bit value; `None` if RFC 8684 does not define it.
    pub const fn from_value(value: u8) -> Option<Self> {
        Some(match value {
            0 => Subtype::Capable,
            1 => Subtype::Join,
            2 => Subtype::Dss,
            3 => Subtype::AddAddr,
            4 => Subtype::RemoveAddr,
            5 => Subtype::Prio,
            6 => Subtype::Fail,
            7 => Subtype::Fastclose,
            8 => Subtype::Tcprst,
            _ => return None,
        })
    }

    /// The option's name in RFC 8684.
    pub const fn name(self) -> &'static str {
        match self {
            Subtype::Capable => "MP_CAPABLE",
            Subtype::Join => "MP_JOIN",
            Subtype::Dss => "DSS",
            Subtype::AddAddr => "ADD_ADDR",
            Subtype::RemoveAddr => "REMOVE_ADDR",
            Subtype::Prio => "MP_PRIO",
            Subtype::Fail => "MP_FAIL",
            Subtype::Fastclose => "MP_FASTCLOSE",
            Subtype::Tcprst => "MP_TCPRST",
        }
    }

    /// The subtype of a whole option of kind 30; `None` if it is too short or undefined.
    pub(crate) fn of(option: &[u8]) -> Option<Self> {
        Subtype::from_value(option.get(2)? >> 4)
    }
}
