//! Options of attachments: metrics and drawings.

use std::path::PathBuf;

use clap::Args;
use setpoint_agent::graphviz::Drawing;
use setpoint_agent::metrics::ADDRESS;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Reporter;

/// Whether figures are given to Prometheus, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Give figures to Prometheus, as `http://127.0.0.1:9233/metrics`
    #[arg(long)]
    prometheus: bool,

    /// Where to listen for it: an address of this machine and a port; port 0 is one that is free, and is said [default: 127.0.0.1:9233]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "prometheus")]
    prometheus_listen: Option<String>,
}

impl MetricsArguments {
    /// Where metrics are given, if that is wanted.
    pub(crate) fn address(&self) -> Option<&str> {
        self.prometheus
            .then(|| self.prometheus_listen.as_deref().unwrap_or(ADDRESS))
    }
}

/// Whether the running graph is drawn, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GraphvizArguments {
    /// After each new graph, write it to FILE@HOSTNAME in the language of Graphviz, and a picture of it to FILE@HOSTNAME.png
    #[arg(long, value_name = "FILE")]
    graphviz: Option<PathBuf>,

    /// Which program of Graphviz makes the picture: dot, neato, twopi, circo, fdp, sfdp, patchwork or osage [default: dot]
    #[arg(long, value_name = "NAME", requires = "graphviz")]
    graphviz_filter: Option<String>,
}

impl GraphvizArguments {
    /// What draws, if that is wanted.
    pub(crate) fn drawing(&self, hostname: &str, reporter: &Reporter) -> Result<Option<Drawing>, Failure> {
        let filter = self.graphviz_filter.as_deref();
        let drawing = self.graphviz.as_deref();
        drawing
            .map(|file| Drawing::new(file, filter, hostname, reporter))
            .transpose()
    }
}
