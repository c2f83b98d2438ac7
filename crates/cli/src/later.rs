//! Options that scripts for older programs pass, and that have no effect here.
//!
//! An option whose promise cannot be kept is refused by name instead of being ignored.

use clap::Args;
use setpoint_programs::failure::Failure;

use crate::output::Output;
use crate::store_arguments::parse_addresses;

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
    // There is no server inside of this program that they could be about.
    #[arg(long, hide = true, value_name = "URL,…", value_parser = parse_addresses)]
    client_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL,…", value_parser = parse_addresses)]
    server_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL,…", value_parser = parse_addresses)]
    advertise_client_urls: Vec<String>,
    #[arg(long, hide = true, value_name = "URL,…", value_parser = parse_addresses)]
    advertise_server_urls: Vec<String>,
    #[arg(long, hide = true)]
    no_network: bool,

    // There is no key pair that they could be about, and nobody who gives them wants one.
    #[arg(long, hide = true)]
    no_pgp: bool,
    #[arg(long, hide = true, value_name = "FILE")]
    pgp_key_path: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    pgp_identity: Option<String>,

    #[arg(long, hide = true, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    pprof: Option<Option<String>>,
}

impl RunLater {
    /// Says what has no effect, and refuses what cannot be done.
    pub(crate) fn check(&self, output: &Output) -> Result<(), Failure> {
        let _ = (self.no_pgp, &self.pgp_key_path, &self.pgp_identity);
        if self.pprof.is_some() {
            let failure = Failure::usage("`--pprof` is not there: setpoint has no server for profiles");
            return Err(failure
                .hint("`perf record -g -p PID` and `perf report` show what the processor does for it")
                .hint("`--prometheus` gives its memory, processor time and the durations of runs"));
        }
        let of_a_server = [
            ("--client-urls", !self.client_urls.is_empty()),
            ("--server-urls", !self.server_urls.is_empty()),
            ("--advertise-client-urls", !self.advertise_client_urls.is_empty()),
            ("--advertise-server-urls", !self.advertise_server_urls.is_empty()),
            ("--no-network", self.no_network),
        ];
        for (name, _) in of_a_server.iter().filter(|(_, given)| *given) {
            output.warning(format!(
                "`{name}` has no effect: without `--etcd-endpoints` what is shared lies in a file, and no server listens"
            ));
        }
        Ok(())
    }
}
