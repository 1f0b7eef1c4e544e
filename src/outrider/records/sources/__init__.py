"""From what the user names to documents: files, folders, streams, URLs, in every framing."""
