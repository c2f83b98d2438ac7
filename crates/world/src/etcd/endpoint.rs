//! Endpoints of an etcd: URLs, and where they lead.

use tonic::transport::Uri;

/// The port of etcd, where an endpoint names none.
const PORT: u16 = 2379;

/// Address of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPlace {
    /// `http` or `https`.
    pub scheme: String,
    /// A name in small letters, or a number without brackets.
    pub host: String,
    /// Its port; that of etcd where it names none.
    pub port: u16,
}

impl EndpointPlace {
    /// Reads a URL; none if it is none.
    pub(super) fn of(endpoint: &str) -> Option<EndpointPlace> {
        EndpointPlace::of_uri(&endpoint.parse().ok()?)
    }

    /// The same of one that was read.
    pub(super) fn of_uri(uri: &Uri) -> Option<EndpointPlace> {
        let host = uri.host()?;
        let number = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        Some(EndpointPlace {
            scheme: uri.scheme_str()?.to_owned(),
            host: number.unwrap_or(host).to_ascii_lowercase(),
            port: match uri.port_u16() {
                None if names_port(uri) => return None,
                port => port.unwrap_or(PORT),
            },
        })
    }
}

/// An endpoint with the port of etcd, if it names none.
pub(super) fn with_port(endpoint: &str) -> Option<String> {
    let uri: Uri = endpoint.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    (!names_port(&uri)).then(|| format!("{scheme}://{authority}:{PORT}"))
}

/// Whether anything stands where a port does, also what is none.
fn names_port(uri: &Uri) -> bool {
    uri.authority()
        .is_some_and(|authority| Some(authority.as_str()) != uri.host())
}

/// The first endpoint that leads where an earlier one does, whatever its scheme.
pub(super) fn named_twice(endpoints: &[String]) -> Option<&str> {
    let place = |one: &String| EndpointPlace::of(one).map(|place| (place.host, place.port));
    let places: Vec<_> = endpoints.iter().map(place).collect();
    let again = (0..places.len()).find(|&at| places[at].is_some() && places[..at].contains(&places[at]));
    again.map(|at| endpoints[at].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_a_port_has_that_of_etcd() {
        for (given, complete) in [
            ("http://a", Some("http://a:2379")),
            ("https://a.example/", Some("https://a.example:2379")),
            ("https://[::1]", Some("https://[::1]:2379")),
            ("http://a:80", None),
            ("https://a:", None),
            ("http://a:x", None),
        ] {
            assert_eq!(with_port(given).as_deref(), complete, "{given}");
        }
        let shown = |url| {
            EndpointPlace::of(url)
                .map(|EndpointPlace { scheme, host, port }| format!("{scheme} {host} {port}"))
        };
        for (url, is) in [
            ("http://127.0.0.1:2379", Some("http 127.0.0.1 2379")),
            ("https://etcd/", Some("https etcd 2379")),
            ("http://[::1]:1", Some("http ::1 1")),
            ("http://[::1]", Some("http ::1 2379")),
            ("http://", None),
            ("http://etcd:x", None),
        ] {
            assert_eq!(shown(url).as_deref(), is, "{url}");
        }
    }

    #[test]
    fn the_same_place_is_known_however_it_is_written() {
        let twice = |endpoints: &[&str]| {
            let endpoints: Vec<String> = endpoints.iter().map(|one| (*one).to_owned()).collect();
            named_twice(&endpoints).map(str::to_owned)
        };
        assert_eq!(twice(&["http://a:2379", "http://b:2379", "http://a:2380"]), None);
        assert_eq!(
            twice(&["http://a", "https://A:2379/"]),
            Some("https://A:2379/".to_owned())
        );
        assert_eq!(
            twice(&["http://[::1]:2379", "http://[::1]"]),
            Some("http://[::1]".to_owned())
        );
    }
}
