//! Lists of documents that are read up to a number of elements: what is far too long is refused before it is in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// A list that has `MOST` elements at most.
struct BoundedListVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for BoundedListVisitor<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format_args!(
                    "more than {MOST} elements (send several requests)"
                )));
            }
            list.push(element);
        }
        Ok(list)
    }
}

/// Reads a list, for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The deserializer's, and of a longer list.
pub fn list_at_most<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(BoundedListVisitor::<T, MOST>(PhantomData))
}

/// A list that is read by [`list_at_most`].
struct BoundedList<T, const MOST: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for BoundedList<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list_at_most::<D, T, MOST>(deserializer).map(Self)
    }
}

/// Reads a list that may be null, like [`list_at_most`].
///
/// # Errors
/// The deserializer's, and of a longer list.
pub fn optional_list_at_most<'de, D, T, const MOST: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Option::<BoundedList<T, MOST>>::deserialize(deserializer)?;
    Ok(list.map(|list| list.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Document {
        #[serde(default, deserialize_with = "optional_list_at_most::<_, _, 2>")]
        list: Option<Vec<u8>>,
    }

    #[test]
    fn a_list_is_read_up_to_its_bound() {
        for (json, expected) in [
            ("{}", None),
            ("{\"list\":null}", None),
            ("{\"list\":[]}", Some(vec![])),
            ("{\"list\":[1,2]}", Some(vec![1, 2])),
        ] {
            let read: Document = serde_json::from_str(json).unwrap();
            assert_eq!(read, Document { list: expected }, "{json}");
        }
        // What follows is not looked at.
        let refused = serde_json::from_str::<Document>("{\"list\":[1,2,3,").unwrap_err();
        assert!(
            refused.to_string().contains("more than 2 elements"),
            "{refused}"
        );
        assert!(serde_json::from_str::<Document>("{\"list\":7}").is_err());
    }
}
