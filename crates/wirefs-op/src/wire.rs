//! Encoding and decoding of values: little endian, in field order, with limits.

mod reader;
mod set;
mod stat;
mod text;
mod writer;

pub use reader::Reader;
pub use text::{Data, Text};
pub use writer::Writer;

/// A decoding error: the bytes are not a valid message, which is the peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {what} at byte {at}")]
pub struct Malformed {
    /// The violated rule.
    pub what: &'static str,
    /// The offset from the message's type byte, in bytes.
    pub at: usize,
}

/// A value with exactly one encoding.
pub trait Wire: Sized {
    /// Appends the encoded value.
    fn put(&self, writer: &mut Writer);
    /// Decodes a value.
    ///
    /// # Errors
    /// Fails if the bytes are not a valid value.
    fn take(reader: &mut Reader) -> Result<Self, Malformed>;
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl Wire for $int {
            fn put(&self, writer: &mut Writer) {
                writer.raw(&self.to_le_bytes());
            }
            fn take(reader: &mut Reader) -> Result<Self, Malformed> {
                Ok(<$int>::from_le_bytes(reader.array()?))
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, i64);

impl Wire for bool {
    fn put(&self, writer: &mut Writer) {
        u8::from(*self).put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        match u8::take(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(reader.malformed("a flag that is neither 0 nor 1")),
        }
    }
}

/// Encoded as `present[1]`, followed by the value if that is 1.
impl<T: Wire> Wire for Option<T> {
    fn put(&self, writer: &mut Writer) {
        self.is_some().put(writer);
        if let Some(value) = self {
            value.put(writer);
        }
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(if bool::take(reader)? { Some(T::take(reader)?) } else { None })
    }
}

/// Declares a struct that is encoded as its fields in order; an optional rule rejects decoded values.
macro_rules! wire_struct {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty,)* }
        $(refused when |$it:ident| $refused:expr, $what:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
        $crate::wire::wire_fields!($name { $($field),* } $(refused when |$it| $refused, $what)?);
    };
}
pub(crate) use wire_struct;

/// Implements the encoding of an existing struct as its fields in order.
macro_rules! wire_fields {
    ($name:ident { $($field:ident),* } $(refused when |$it:ident| $refused:expr, $what:literal)?) => {
        impl $crate::wire::Wire for $name {
            fn put(&self, _writer: &mut $crate::wire::Writer) {
                $($crate::wire::Wire::put(&self.$field, _writer);)*
            }
            fn take(_reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::Malformed> {
                let value = $name { $($field: $crate::wire::Wire::take(_reader)?),* };
                $(
                    let $it = &value;
                    if $refused {
                        return Err(_reader.malformed($what));
                    }
                )?
                Ok(value)
            }
        }
    };
}
pub(crate) use wire_fields;

/// Implements the encoding of a closed enum of codes.
macro_rules! wire_codes {
    ($name:ident: $int:ty, $what:literal, [$($variant:ident),*]) => {
        impl $crate::wire::Wire for $name {
            fn put(&self, writer: &mut $crate::wire::Writer) {
                (*self as $int).put(writer);
            }
            fn take(reader: &mut $crate::wire::Reader) -> Result<Self, $crate::wire::Malformed> {
                let code = <$int>::take(reader)?;
                $(if code == $name::$variant as $int { return Ok($name::$variant); })*
                Err(reader.malformed($what))
            }
        }
    };
}
pub(crate) use wire_codes;
