"""What a client may ask, validated once."""
