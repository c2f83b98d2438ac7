//! Where the etcd of a cluster is reached, for kinds that have other hosts join it.

use std::time::Duration;

use setpoint_engine::{Failure, async_trait};
use setpoint_resources::{Endpoints, LocalEndpoint, StoreAccess};
use setpoint_world::{EndpointPlace, EtcdStore};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How often it is asked who the members are, for however many that want to know.
const ASK_EACH: Duration = Duration::from_secs(1);

/// The members of an etcd.
pub struct EtcdEndpoints {
    store: EtcdStore,
    /// Below which keys lie where nobody says otherwise.
    usual_namespace: &'static str,
    /// What the members have advertised last, and when they were asked.
    last: Mutex<Option<(Instant, Vec<String>)>>,
}

impl EtcdEndpoints {
    /// The endpoints of this store; `usual_namespace` is where keys lie if nobody says otherwise.
    #[must_use]
    pub fn new(store: EtcdStore, usual_namespace: &'static str) -> EtcdEndpoints {
        EtcdEndpoints {
            store,
            usual_namespace,
            last: Mutex::default(),
        }
    }

    /// What they advertise, as of a moment ago; none while they do not answer.
    async fn advertised_lately(&self) -> Option<Vec<String>> {
        let mut last = self.last.lock().await;
        if let Some((asked, advertised)) = &*last
            && asked.elapsed() < ASK_EACH
        {
            return Some(advertised.clone());
        }
        let advertised = self.store.advertised().await.ok()?;
        *last = Some((Instant::now(), advertised.clone()));
        Some(advertised)
    }
}

#[async_trait]
impl Endpoints for EtcdEndpoints {
    async fn advertised(&self) -> Result<Vec<String>, Failure> {
        let advertised = self.store.advertised().await;
        advertised.map_err(|error| Failure::new("ask the store for its members").because(error))
    }

    fn local(&self) -> Result<LocalEndpoint, Failure> {
        let options = self.store.options();
        let failed = |why: &str| Failure::new("lead another host to the store").because(why.to_owned());
        if options.ssh.is_some() {
            return Err(failed(
                "this host reaches the store through SSH itself, and so has no endpoint to lead to: `tunnelled => false,` has the other host reach it by itself",
            ));
        }
        let place = self.store.first_endpoint();
        let EndpointPlace { scheme, host, port } =
            place.ok_or_else(|| failed("its first endpoint is no URL"))?;
        Ok(LocalEndpoint { scheme, host, port })
    }

    async fn changed(&self, from: &[String]) -> Vec<String> {
        loop {
            if let Some(advertised) = self.advertised_lately().await
                && advertised != from
            {
                return advertised;
            }
            tokio::time::sleep(ASK_EACH).await;
        }
    }

    fn access(&self) -> StoreAccess {
        let options = self.store.options();
        let tls = options.tls.as_ref();
        StoreAccess {
            namespace: Some(options.namespace.clone()).filter(|namespace| namespace != self.usual_namespace),
            authority: tls.and_then(|tls| tls.authority.clone()),
            shows_certificate: tls.is_some_and(|tls| tls.identity.is_some()),
            is_user: options.login.is_some(),
        }
    }
}
