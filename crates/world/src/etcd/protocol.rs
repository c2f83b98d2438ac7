//! etcd's API, version 3: the messages and calls that are used here, as its documentation gives them.
//!
//! They are written by hand, a few structs, so that building needs no compiler of protocol descriptions. Fields that are not used are left out, which
//! the encoding allows.

use std::sync::Arc;

use prost::{Message, Oneof};
use tonic::Request;
use tonic::client::Grpc;
use tonic::codec::Streaming;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

/// The largest answer that is taken, in bytes. etcd takes no request of more than 1.5 MiB if it is not told otherwise, but an answer may have many keys.
const LARGEST: usize = 256 << 20;

/// Calls to one etcd, with the token of a login.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    endpoint: Arc<str>,
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

impl Calls {
    pub(super) fn new(channel: Channel, endpoint: &str) -> Calls {
        Calls {
            endpoint: endpoint.into(),
            channel,
            token: None,
        }
    }

    /// Name of the member, for messages.
    pub(super) fn endpoint(&self) -> Arc<str> {
        self.endpoint.clone()
    }

    /// The same, as who was given a token.
    pub(super) fn with_token(mut self, token: &str) -> Result<Calls, tonic::Status> {
        let token = token.parse();
        self.token =
            Some(token.map_err(|_| tonic::Status::unauthenticated("the token of the login is no text"))?);
        Ok(self)
    }

    pub(super) async fn transact(&self, request: TxnRequest) -> Result<TxnResponse, tonic::Status> {
        self.call("/etcdserverpb.KV/Txn", request).await
    }

    pub(super) async fn grant(
        &self,
        request: LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, tonic::Status> {
        self.call("/etcdserverpb.Lease/LeaseGrant", request).await
    }

    pub(super) async fn revoke(
        &self,
        request: LeaseRevokeRequest,
    ) -> Result<LeaseRevokeResponse, tonic::Status> {
        self.call("/etcdserverpb.Lease/LeaseRevoke", request).await
    }

    pub(super) async fn authenticate(
        &self,
        request: AuthenticateRequest,
    ) -> Result<AuthenticateResponse, tonic::Status> {
        self.call("/etcdserverpb.Auth/Authenticate", request).await
    }

    /// A call about users and roles.
    pub(super) async fn auth<Q, A>(&self, name: &str, request: Q) -> Result<A, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.call(&format!("/etcdserverpb.Auth/{name}"), request).await
    }

    pub(super) async fn members(&self) -> Result<MemberListResponse, tonic::Status> {
        self.call("/etcdserverpb.Cluster/MemberList", MemberListRequest {})
            .await
    }

    /// Keeps leases alive, each time one is sent.
    pub(super) async fn keep_alive(
        &self,
        requests: impl tokio_stream::Stream<Item = LeaseKeepAliveRequest> + Send + 'static,
    ) -> Result<Streaming<LeaseKeepAliveResponse>, tonic::Status> {
        self.stream("/etcdserverpb.Lease/LeaseKeepAlive", requests).await
    }

    pub(super) async fn watch(
        &self,
        requests: impl tokio_stream::Stream<Item = WatchRequest> + Send + 'static,
    ) -> Result<Streaming<WatchResponse>, tonic::Status> {
        self.stream("/etcdserverpb.Watch/Watch", requests).await
    }

    async fn call<Q, A>(&self, path: &str, request: Q) -> Result<A, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let path =
            PathAndQuery::try_from(path).map_err(|error| tonic::Status::internal(error.to_string()))?;
        let answer = grpc
            .unary(self.request(request), path, ProstCodec::<Q, A>::default())
            .await?;
        Ok(answer.into_inner())
    }

    async fn stream<Q, A>(
        &self,
        path: &'static str,
        requests: impl tokio_stream::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let path = PathAndQuery::from_static(path);
        let answer = grpc
            .streaming(self.request(requests), path, ProstCodec::<Q, A>::default())
            .await?;
        Ok(answer.into_inner())
    }

    async fn grpc(&self) -> Result<Grpc<Channel>, tonic::Status> {
        let mut grpc = Grpc::new(self.channel.clone())
            .max_decoding_message_size(LARGEST)
            .max_encoding_message_size(LARGEST);
        grpc.ready()
            .await
            .map_err(|error| tonic::Status::from_error(Box::new(error)))?;
        Ok(grpc)
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        // A member that has lost the others would keep one waiting without a word.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        request
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
    #[prost(uint64, tag = "4")]
    pub(super) raft_term: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    /// 0: all.
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "RequestKind", tags = "1, 2, 3")]
    pub(super) request: Option<RequestKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum RequestKind {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "ResponseKind", tags = "1, 2, 3")]
    pub(super) response: Option<ResponseKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum ResponseKind {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
}

/// Comparison operator.
pub(super) const EQUAL: i32 = 0;
pub(super) const GREATER: i32 = 1;

/// Compared field.
pub(super) const CREATE: i32 = 1;
pub(super) const MOD: i32 = 2;
pub(super) const VALUE: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    #[prost(int32, tag = "1")]
    pub(super) result: i32,
    #[prost(int32, tag = "2")]
    pub(super) target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(oneof = "CompareWith", tags = "5, 6, 7")]
    pub(super) with: Option<CompareWith>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum CompareWith {
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    #[prost(bytes, tag = "7")]
    Value(Vec<u8>),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "WatchRequestKind", tags = "1")]
    pub(super) request: Option<WatchRequestKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum WatchRequestKind {
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchCreateRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) start_revision: i64,
    #[prost(bool, tag = "4")]
    pub(super) progress_notify: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct WatchResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(int64, tag = "5")]
    pub(super) compact_revision: i64,
    #[prost(string, tag = "6")]
    pub(super) cancel_reason: String,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<Event>,
}

/// An event that is no setting.
pub(super) const DELETE: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseRevokeRequest {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseRevokeResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseKeepAliveRequest {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseKeepAliveResponse {
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) members: Vec<MemberOfCluster>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberOfCluster {
    #[prost(string, repeated, tag = "4")]
    pub(super) client_urls: Vec<String>,
}

/// No password in what is shown of it.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}
