//! Remembers which media a service has accepted and which media it has refused. A server that has refused a picture
//! would refuse every later request with the same picture. So later requests should not show it to this server.
//!
//! This knowledge is kept in memory only. A new revision of the configuration clears the knowledge, because the
//! person may have corrected the declared capabilities.

use polity_registry::Snapshot;
use polity_society::id::{ArtifactId, ServiceId};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// The number of refusals after which a service seems to accept no media at all. The service must have refused at least
/// this many requests and at least this many different artifacts, and must have accepted no media. One refused request
/// is not enough: it may have contained more media than the server accepts in one request.
const ENOUGH: usize = 3;

/// The media that one service has accepted and refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trust {
    revision: u64,
    taken: BTreeSet<ArtifactId>,
    refused: BTreeSet<ArtifactId>,
    /// How many requests were refused.
    refusals: usize,
}

/// The media that a service is expected to refuse in the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distrust {
    /// The artifacts that the service has refused.
    pub(crate) refused: BTreeSet<ArtifactId>,
    /// Whether the service is expected to refuse all other media too.
    pub(crate) of_all: OfAll,
}

/// Whether a service seems to accept no media at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfAll {
    /// The service has refused several media and accepted none.
    Yes,
    /// Nothing suggests that the service refuses all media.
    #[default]
    No,
}

impl Trust {
    /// Notes that the service has answered a request with these media.
    fn take(&mut self, shown: &[ArtifactId]) {
        self.taken.extend(shown.iter().cloned());
    }

    /// Records that the service has refused a request with these media. Media that the service has accepted before are
    /// probably not the cause, so only the other media are marked as refused. If the service has accepted all of these
    /// media before, all are marked as refused.
    fn refuse(&mut self, shown: &[ArtifactId]) {
        if shown.is_empty() {
            return;
        }
        self.refusals += 1;
        let new: Vec<&ArtifactId> = shown.iter().filter(|id| !self.taken.contains(*id)).collect();
        if new.is_empty() {
            for id in shown {
                self.taken.remove(id);
                self.refused.insert(id.clone());
            }
        }
        self.refused.extend(new.into_iter().cloned());
    }

    fn distrust(&self) -> Distrust {
        let often = self.refusals >= ENOUGH && self.refused.len() >= ENOUGH;
        let of_all = if self.taken.is_empty() && often { OfAll::Yes } else { OfAll::No };
        Distrust { refused: self.refused.clone(), of_all }
    }
}

/// The media that each service has accepted and refused.
#[derive(Debug, Default)]
pub(crate) struct Trusts(Mutex<HashMap<ServiceId, Trust>>);

impl Trusts {
    /// Returns the media that a service is expected to refuse. The result is empty if the refusals were recorded under
    /// another revision of the configuration than that of `snapshot`. But this function does not remove them, because
    /// calls under the other revision may still be in progress.
    pub(crate) fn distrust(&self, snapshot: &Snapshot, service: &ServiceId) -> Distrust {
        let trusts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = snapshot.catalogue.revision();
        let known = trusts.get(service).filter(|trust| trust.revision == revision);
        known.map(Trust::distrust).unwrap_or_default()
    }

    /// Records that a service has accepted these media.
    pub(crate) fn taken(&self, snapshot: &Snapshot, service: &ServiceId, shown: &[ArtifactId]) {
        self.with(snapshot, service, |trust| trust.take(shown));
    }

    /// Records that a service has refused a request with these media, and answered the same request after the media
    /// were removed.
    pub(crate) fn refused(&self, snapshot: &Snapshot, service: &ServiceId, shown: &[ArtifactId]) {
        self.with(snapshot, service, |trust| trust.refuse(shown));
    }

    fn with<T>(&self, snapshot: &Snapshot, service: &ServiceId, act: impl FnOnce(&mut Trust) -> T) -> T {
        // Use the lock even if another thread panicked while it held the lock: the sets of ids are still valid.
        let mut trusts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let trust = trusts.entry(service.clone()).or_default();
        let revision = snapshot.catalogue.revision();
        if trust.revision != revision {
            *trust = Trust { revision, ..Trust::default() };
        }
        act(trust)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::snapshot;
    use serde_json::json;

    fn ids(names: &[&str]) -> Vec<ArtifactId> {
        names.iter().map(|name| ArtifactId::new(*name)).collect()
    }

    enum Did {
        Took(&'static [&'static str]),
        Refused(&'static [&'static str]),
    }
    use Did::{Refused, Took};

    #[track_caller]
    fn check(happened: &[Did], refused: &[&str], of_all: OfAll) {
        let mut trust = Trust::default();
        for did in happened {
            match did {
                Took(shown) => trust.take(&ids(shown)),
                Refused(shown) => trust.refuse(&ids(shown)),
            }
        }
        let refused = ids(refused).into_iter().collect();
        assert_eq!(trust.distrust(), Distrust { refused, of_all });
    }

    #[test]
    fn who_is_blamed() {
        check(&[], &[], OfAll::No);
        check(&[Refused(&["a"])], &["a"], OfAll::No);
        check(&[Took(&["a"]), Refused(&["a", "b"])], &["b"], OfAll::No);
        check(&[Took(&["a"]), Refused(&["a"])], &["a"], OfAll::No);
        check(&[Refused(&["a", "b", "c"])], &["a", "b", "c"], OfAll::No);
        check(&[Refused(&["a"]), Refused(&["a"]), Refused(&["a"])], &["a"], OfAll::No);
        check(&[Refused(&[])], &[], OfAll::No);
        check(&[Refused(&["a"]), Refused(&["b"]), Refused(&["c"])], &["a", "b", "c"], OfAll::Yes);
        check(&[Took(&["z"]), Refused(&["a", "b", "c"])], &["a", "b", "c"], OfAll::No);
    }

    #[tokio::test]
    async fn services_are_told_apart() {
        let snapshot = snapshot(&json!({})).await;
        let trusts = Trusts::default();
        let (eyes, all) = (ServiceId::new("eyes"), ServiceId::new("all"));
        trusts.refused(&snapshot, &eyes, &ids(&["a"]));
        assert_eq!(trusts.distrust(&snapshot, &eyes).refused.len(), 1);
        assert_eq!(trusts.distrust(&snapshot, &all), Distrust::default());
    }

    #[tokio::test]
    async fn looking_with_another_revision_forgets_nothing() {
        let snapshot = snapshot(&json!({})).await;
        let trusts = Trusts::default();
        let eyes = ServiceId::new("eyes");
        let revision = snapshot.catalogue.revision() + 1;
        let newer = Trust { revision, refused: ids(&["a"]).into_iter().collect(), ..Trust::default() };
        trusts.0.lock().unwrap().insert(eyes.clone(), newer.clone());
        assert_eq!(trusts.distrust(&snapshot, &eyes), Distrust::default());
        assert_eq!(trusts.0.lock().unwrap().get(&eyes), Some(&newer));
    }
}
