import math

from outrider.engine.models.rope import rope_tables


def test_pair_i_turns_by_the_position_over_theta_to_the_power_of_2i_over_the_head_size() -> None:
    cos, sin = rope_tables(4, 100.0, 3)
    assert cos.shape == sin.shape == (3, 2)
    for position in range(3):
        for i, frequency in enumerate((1.0, 0.1)):
            assert math.isclose(cos[position, i], math.cos(position * frequency), abs_tol=1e-6)
            assert math.isclose(sin[position, i], math.sin(position * frequency), abs_tol=1e-6)
