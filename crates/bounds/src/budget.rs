//! One budget of memory for all request bodies.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which the budget counts, in bytes. Each share takes at least one unit, so the number of shares is
/// bounded.
const UNIT: usize = 64 * 1024;

/// Memory that all request bodies share. All clones of a budget share the same memory.
#[derive(Clone, Debug)]
pub struct Budget {
    units: Arc<Semaphore>,
    total: usize,
}

/// The budget has no room for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// Other bodies use the memory now. A later request may get memory.
    #[error("too many large requests at the same time")]
    Now,
    /// The body is larger than the whole budget.
    #[error("the request takes more memory than all requests together may take")]
    Always,
}

/// The memory that one body has taken from the budget. All clones of a share are the same share. The memory returns
/// to the budget when the last clone is dropped, or when the share is released.
#[derive(Clone, Debug)]
pub struct Share {
    budget: Budget,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Budget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let total = bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(total)), total }
    }

    /// Takes memory for a body of this many bytes. If the budget has no room now, waits at most `within` for room.
    ///
    /// # Errors
    ///
    /// Fails if there is no room in time, or if the budget is too small for the body.
    pub async fn take(&self, bytes: usize, within: Duration) -> Result<Share, Full> {
        let permit = self.acquire(bytes.max(1), within).await?;
        Ok(Share { budget: self.clone(), taken: Arc::new(Mutex::new(Some(permit))) })
    }

    async fn acquire(&self, bytes: usize, within: Duration) -> Result<OwnedSemaphorePermit, Full> {
        let units = bytes.div_ceil(UNIT);
        let count = u32::try_from(units).map_err(|_| Full::Always)?;
        if units > self.total {
            return Err(Full::Always);
        }
        let acquired = tokio::time::timeout(within, Arc::clone(&self.units).acquire_many_owned(count)).await;
        // The semaphore is never closed.
        acquired.map_err(|_| Full::Now)?.map_err(|_| Full::Now)
    }
}

impl Share {
    /// Enlarges the share to `bytes` bytes in total. If the budget has no room now, waits at most `within` for room.
    /// A share that has been released stays empty.
    ///
    /// # Errors
    ///
    /// Fails as [`Budget::take`] does. In this case, the size of the share does not change.
    pub async fn grow(&self, bytes: usize, within: Duration) -> Result<(), Full> {
        let has = self.lock().as_ref().map(|taken| taken.num_permits() * UNIT);
        let Some(missing) = has.and_then(|has| bytes.checked_sub(has)).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        if bytes.div_ceil(UNIT) > self.budget.total {
            return Err(Full::Always);
        }
        let more = self.budget.acquire(missing, within).await?;
        if let Some(taken) = self.lock().as_mut() {
            taken.merge(more);
        }
        Ok(())
    }

    /// Shrinks the share to `bytes` bytes and gives the rest back to the budget. Before this call, the caller must drop
    /// the data that needed the rest.
    pub fn shrink(&self, bytes: usize) {
        if let Some(taken) = self.lock().as_mut() {
            let spare = taken.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(taken.split(spare));
        }
    }

    /// Gives all memory back to the budget. Before this call, the caller must drop the body and everything made from
    /// the body.
    pub fn release(&self) {
        self.lock().take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        // If another thread panicked while it held the lock, the permit is still valid, so the lock is used as usual.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_comes_back() {
        let budget = Budget::new(4 * UNIT);
        let first = budget.take(3 * UNIT, SOON).await.unwrap();
        assert_eq!(budget.take(2 * UNIT, SOON).await.unwrap_err(), Full::Now);
        let second = budget.take(1, SOON).await.unwrap();
        assert_eq!(second.grow(2 * UNIT, SOON).await, Err(Full::Now));
        first.clone().release();
        assert_eq!(second.grow(4 * UNIT, SOON).await, Ok(()));
        assert_eq!(first.grow(UNIT, SOON).await, Ok(()), "a released share stays empty");
        second.shrink(UNIT);
        second.shrink(3 * UNIT);
        drop(budget.take(3 * UNIT, SOON).await.unwrap());
        assert_eq!(budget.take(4 * UNIT, SOON).await.unwrap_err(), Full::Now);
        drop(second);
        budget.take(4 * UNIT, SOON).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_fits_is_not_waited_for() {
        let budget = Budget::new(4 * UNIT);
        assert_eq!(budget.take(4 * UNIT + 1, SOON).await.unwrap_err(), Full::Always);
        let share = budget.take(1, SOON).await.unwrap();
        assert_eq!(share.grow(usize::MAX, SOON).await, Err(Full::Always));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_what_another_gives_back() {
        let budget = Budget::new(UNIT);
        let first = budget.take(1, SOON).await.unwrap();
        let waits = budget.take(1, SOON);
        let gives = async { drop(first) };
        let (second, ()) = tokio::join!(waits, gives);
        assert!(second.is_ok());
    }
}
