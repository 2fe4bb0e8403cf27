//! What a server of HTTP/2 says, frame by frame.

#![allow(dead_code, reason = "no test uses all of it")]

use crate::server::Peer;

/// The preface, our settings, and the client's frames up to the first request's `HEADERS`.
pub(crate) async fn greet(peer: &mut Peer) {
    peer.bytes(24).await.expect("the preface");
    peer.send([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    next_request(peer).await.expect("a request");
}

/// The client's frames up to the next request's `HEADERS` (type 1). `None`: there is no other.
pub(crate) async fn next_request(peer: &mut Peer) -> Option<()> {
    loop {
        let head = peer.bytes(9).await?;
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        peer.bytes(length).await?;
        if head[3] == 1 {
            return Some(());
        }
    }
}

/// `RST_STREAM` of the first stream.
pub(crate) fn reset(code: u8) -> Vec<u8> {
    vec![0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code]
}

/// `GOAWAY` after `last`.
pub(crate) fn go_away(last: u8, code: u8) -> Vec<u8> {
    vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, code]
}

pub(crate) const ENHANCE_YOUR_CALM: u8 = 11;
