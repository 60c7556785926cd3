//! Values in boxes that are used again.
//!
//! A packet passes some ten queues and functions. In a box, each move is one word, and its memory is
//! that of an earlier packet of the same thread, so nothing is allocated.

use core::cell::RefCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// A thread's free boxes.
pub type FreeBoxes<T> = RefCell<Vec<Box<T>>>;

/// Most free boxes that a thread keeps.
const MAX_FREE: usize = 4096;

const PRESENT: &str = "the value is there until it is dropped or taken out";

/// A type whose boxes are used again.
pub trait Reuse: Clone + 'static {
    /// The free boxes of this thread.
    fn free() -> &'static LocalKey<FreeBoxes<Self>>;

    /// Release the memory that the value owns. The value itself is overwritten later.
    fn release(&mut self);
}

/// A value in a box that is used again after the value has been dropped.
pub struct Pooled<T: Reuse>(
    /// `None` only while the value is dropped or taken out.
    Option<Box<T>>,
);

impl<T: Reuse> Pooled<T> {
    /// Put `value` into a box.
    #[inline]
    pub fn new(value: T) -> Self {
        let mut free = T::free().with_borrow_mut(Vec::pop);
        match &mut free {
            Some(place) => **place = value,
            None => free = Some(Self::with_spares(value)),
        }
        Pooled(free)
    }

    /// A box that was used before, if there is one. Its value is that of the last time, without the memory
    /// that it owned.
    #[inline]
    pub(crate) fn used() -> Option<Self> {
        let free = T::free().with_borrow_mut(Vec::pop);
        free.map(|place| Pooled(Some(place)))
    }

    /// A new box for `value`. The list has room for as many boxes as have ever been free at once, and is
    /// filled, so that a new largest number of values seldom allocates.
    #[cold]
    fn with_spares(value: T) -> Box<T> {
        let spare = || {
            let mut copy = value.clone();
            copy.release();
            Box::new(copy)
        };
        T::free().with_borrow_mut(|free| {
            free.extend(std::iter::repeat_with(spare).take(free.capacity()));
        });
        Box::new(value)
    }

    /// Free the boxes of this thread that no value uses.
    pub fn release_memory() {
        T::free().with_borrow_mut(|free| *free = Vec::new());
    }

    /// The value without its box.
    pub fn into_inner(mut self) -> T {
        *self.0.take().expect(PRESENT)
    }
}

impl<T: Reuse> Drop for Pooled<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut place) = self.0.take() else { return };
        place.release();
        // At the end of a thread, the list may be gone before the last packets.
        let _ = T::free().try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_FREE {
                free.push(place);
            }
        });
    }
}

impl<T: Reuse> Deref for Pooled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_ref().expect(PRESENT)
    }
}

impl<T: Reuse> DerefMut for Pooled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(PRESENT)
    }
}

impl<T: Reuse> From<T> for Pooled<T> {
    #[inline]
    fn from(value: T) -> Self {
        Pooled::new(value)
    }
}

impl<T: Reuse> Clone for Pooled<T> {
    fn clone(&self) -> Self {
        Pooled::new((**self).clone())
    }
}

impl<T: Reuse + fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Reuse + PartialEq> PartialEq for Pooled<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Reuse + Eq> Eq for Pooled<T> {}
