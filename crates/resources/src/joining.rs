//! What another host needs to join the cluster that this one is in, as a service of those kinds that start one.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{Failure, async_trait};
use setpoint_host::files::AbsolutePath;

/// Where the store of a cluster is reached.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// The URLs at which its members say that clients reach them, as they say them.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn advertised(&self) -> Result<Vec<String>, Failure>;

    /// The first one that this host itself uses.
    ///
    /// # Errors
    /// When this host reaches none directly.
    fn local(&self) -> Result<LocalEndpoint, Failure>;

    /// Waits until the members say something else than this, and answers what.
    async fn changed(&self, from: &[String]) -> Vec<String>;

    /// What else a host needs.
    fn access(&self) -> StoreAccess;
}

/// An endpoint as this host uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// `http` or `https`.
    pub scheme: String,
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What a host needs beside an endpoint. Nothing secret is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreAccess {
    /// What all keys begin with, where it is not what all hosts take anyway.
    pub namespace: Option<String>,
    /// Who has signed the certificates of the store: a file of this host.
    pub authority: Option<AbsolutePath>,
    /// Whether this host shows a certificate of its own.
    pub shows_certificate: bool,
    /// Whether this host is a user of the store, with a password.
    pub is_user: bool,
}

/// How another host joins.
pub struct Joining {
    endpoints: Option<Arc<dyn Endpoints>>,
    ends_when_idle_for: Option<Duration>,
}

impl Joining {
    /// Of a process that ends when it was idle for so long, if it ends then at all. Where hosts share no cluster there are no endpoints.
    #[must_use]
    pub fn new(endpoints: Option<Arc<dyn Endpoints>>, ends_when_idle_for: Option<Duration>) -> Joining {
        Joining {
            endpoints,
            ends_when_idle_for,
        }
    }

    /// Where the store is reached.
    ///
    /// # Errors
    /// When this host is in no cluster.
    pub fn endpoints(&self) -> Result<&Arc<dyn Endpoints>, Failure> {
        self.endpoints.as_ref().ok_or_else(|| {
            Failure::new("find the cluster that another host could join")
                .because("this host is in no cluster: pass `--etcd-endpoints` to `run`")
        })
    }

    /// How long this process may be idle before it ends; none where it stays.
    #[must_use]
    pub fn ends_when_idle_for(&self) -> Option<Duration> {
        self.ends_when_idle_for
    }
}

impl fmt::Debug for Joining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joining")
            .field("is_in_cluster", &self.endpoints.is_some())
            .finish_non_exhaustive()
    }
}

/// Those of advertised URLs that lead somewhere from another host, sorted. An address that means every address of a host is none that anybody could reach.
#[must_use]
pub(crate) fn reachable(advertised: Vec<String>) -> Vec<String> {
    let mut urls: Vec<String> = advertised
        .into_iter()
        .map(|url| url.trim().to_owned())
        .filter(|url| leads_somewhere(url))
        .collect();
    urls.sort();
    urls.dedup();
    urls
}

fn leads_somewhere(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    // A number of IPv6 may name an interface.
    let number = host.split('%').next().unwrap_or_default();
    match number.parse::<IpAddr>() {
        Ok(address) => !address.to_canonical().is_unspecified(),
        Err(_) => !host.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_mean_every_address_lead_nowhere_and_the_others_are_sorted() {
        let urls = [
            "http://0.0.0.0:2379",
            "https://etcd-2:2379",
            "http://[::]:2379",
            "http://[::ffff:0.0.0.0]:2379/",
            "http://[::%eth0]:2379",
            "http://:2379",
            "https://etcd-1:2379",
            "etcd-3:2379",
            "http://10.0.0.1:2379",
            "http://[fd00::1]:2379",
            "https://etcd-1:2379",
            "",
        ];
        assert_eq!(
            reachable(urls.map(str::to_owned).to_vec()),
            [
                "http://10.0.0.1:2379",
                "http://[fd00::1]:2379",
                "https://etcd-1:2379",
                "https://etcd-2:2379",
            ]
        );
        assert_eq!(reachable(vec!["http://0.0.0.0:1".to_owned()]), [""; 0]);
    }
}
