"""OpenAI's API in vLLM's dialect: what is asked, what is answered, and where."""
