//! Options that scripts for older programs pass: what has no effect here, and what is not there yet.
//!
//! An option whose promise cannot be kept is refused by name instead of being ignored.

use clap::Args;

use crate::failure::Failure;
use crate::output::Output;

/// Options of compiling.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CompileLater {
    #[arg(long, hide = true, value_name = "N", allow_negative_numbers = true)]
    depth: Option<i64>,
    #[arg(long, hide = true, value_name = "N", allow_negative_numbers = true)]
    retry: Option<i64>,
    #[arg(long, hide = true, value_name = "NAME")]
    unify_name: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    unify_optimizations: Vec<String>,
}

impl CompileLater {
    /// Says what has no effect.
    pub(crate) fn check(&self, output: &Output) {
        let without_effect = [
            ("--depth", self.depth.is_some()),
            ("--retry", self.retry.is_some()),
            ("--unify-name", self.unify_name.is_some()),
            ("--unify-optimizations", !self.unify_optimizations.is_empty()),
        ];
        for (name, _) in without_effect.iter().filter(|(_, given)| *given) {
            output.warning(format!("`{name}` has no effect"));
        }
    }
}

/// Options of running.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunLater {
    #[arg(long, hide = true, value_name = "URL")]
    client_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL")]
    server_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL")]
    advertise_client_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL")]
    advertise_server_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL")]
    ssh_url: Option<String>,
    #[arg(long, hide = true, value_name = "KEY")]
    ssh_hostkey: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    ssh_id: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    pgp_key_path: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    pgp_identity: Option<String>,
    #[arg(long, hide = true, value_name = "FILE")]
    graphviz: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    graphviz_filter: Option<String>,
    #[arg(long, hide = true)]
    prometheus: bool,
    #[arg(long, hide = true, value_name = "ADDRESS")]
    prometheus_listen: Option<String>,
    #[arg(long, hide = true, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    pprof: Option<Option<String>>,

    // What these switch off is not there, so they are kept as they are.
    #[arg(long, hide = true)]
    no_network: bool,
    #[arg(long, hide = true)]
    no_pgp: bool,
}

impl RunLater {
    /// Refuses what cannot be done.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let _ = (self.no_network, self.no_pgp);
        refuse(&[
            ("--client-urls", !self.client_urls.is_empty()),
            ("--server-urls", !self.server_urls.is_empty()),
            ("--advertise-client-urls", !self.advertise_client_urls.is_empty()),
            ("--advertise-server-urls", !self.advertise_server_urls.is_empty()),
            ("--ssh-url", self.ssh_url.is_some()),
            ("--ssh-hostkey", self.ssh_hostkey.is_some()),
            ("--ssh-id", self.ssh_id.is_some()),
            ("--pgp-key-path", self.pgp_key_path.is_some()),
            ("--pgp-identity", self.pgp_identity.is_some()),
            ("--graphviz", self.graphviz.is_some()),
            ("--graphviz-filter", self.graphviz_filter.is_some()),
            ("--prometheus", self.prometheus),
            ("--prometheus-listen", self.prometheus_listen.is_some()),
            ("--pprof", self.pprof.is_some()),
        ])
    }
}

fn refuse(options: &[(&str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Failure::usage(format!("`{name}` is not supported yet"))),
        None => Ok(()),
    }
}
