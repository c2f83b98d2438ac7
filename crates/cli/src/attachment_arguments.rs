//! Options of attachments: metrics and drawings.

use std::path::PathBuf;

use clap::Args;
use setpoint_agent::graphviz::Drawing;
use setpoint_agent::metrics::ADDRESS;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Reporter;

use crate::headings;

/// Whether figures are given to Prometheus, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MetricsArguments {
    /// Serve Prometheus metrics at http://127.0.0.1:9233/metrics
    #[arg(long, help_heading = headings::OUTPUT)]
    prometheus: bool,

    /// Address of the metrics
    ///
    /// With port 0, a free port is chosen and printed [default: 127.0.0.1:9233]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "prometheus", help_heading = headings::OUTPUT, hide_short_help = true)]
    prometheus_listen: Option<String>,
}

impl MetricsArguments {
    /// The address of the metrics, if they are wanted.
    pub(crate) fn address(&self) -> Option<&str> {
        self.prometheus
            .then(|| self.prometheus_listen.as_deref().unwrap_or(ADDRESS))
    }
}

/// Whether the running graph is drawn, and where.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GraphvizArguments {
    /// Write each new graph to FILE@HOSTNAME, for Graphviz
    ///
    /// An image goes to FILE@HOSTNAME.png.
    #[arg(long, value_name = "FILE", help_heading = headings::OUTPUT)]
    graphviz: Option<PathBuf>,

    /// Graphviz program that draws the image
    ///
    /// dot, neato, twopi, circo, fdp, sfdp, patchwork or osage [default: dot]
    #[arg(long, value_name = "NAME", requires = "graphviz", help_heading = headings::OUTPUT, hide_short_help = true)]
    graphviz_filter: Option<String>,
}

impl GraphvizArguments {
    /// The drawing, if it is wanted.
    pub(crate) fn drawing(&self, hostname: &str, reporter: &Reporter) -> Result<Option<Drawing>, Failure> {
        let filter = self.graphviz_filter.as_deref();
        let drawing = self.graphviz.as_deref();
        drawing
            .map(|file| Drawing::new(file, filter, hostname, reporter))
            .transpose()
    }
}
